package feedtype

import (
	"reflect"
	"testing"
)

// Observers calls all of them for every event, in their order. A function that none of them has stays nil.
func TestObserversAreAllCalledInOrder(t *testing.T) {
	var told []int
	observer := func(n int) *Observer {
		o := &Observer{}
		v := reflect.ValueOf(o).Elem()
		for i := range v.NumField() {
			v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
				told = append(told, n*100+i)
				return nil
			}))
		}
		return o
	}
	v := reflect.ValueOf(Observers(observer(1), nil, observer(2))).Elem()
	for i := range v.NumField() {
		told = nil
		v.Field(i).Call([]reflect.Value{reflect.Zero(v.Field(i).Type().In(0))})
		if len(told) != 2 || told[0] != 100+i || told[1] != 200+i {
			t.Errorf("%s: told %v", v.Type().Field(i).Name, told)
		}
	}
	if o := Observers(nil, &Observer{Retried: func(RetryEvent) {}}); o.Skipped != nil || o.Retried == nil {
		t.Errorf("made what nobody asks for: %+v", o)
	}
}
