package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed"
)

// formValues has the fields of an action's form.
type formValues struct {
	consumer, feed, key, to, lease string
	errorText, group               string // of rowfeed.LetterQuery
	shard                          *int
	epoch                          int64
	values                         url.Values // unparsed, for the form of the confirmation
}

func (f formValues) id() rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: f.consumer, Feed: f.feed, Shard: f.shard}
}

// letters selects dead letters of the consumer.
func (f formValues) letters() rowfeed.LetterQuery {
	return rowfeed.LetterQuery{ConsumerID: f.id(), Key: f.key, Error: f.errorText, Group: f.group}
}

func (f formValues) which() string {
	switch {
	case f.key != "":
		return "the dead letter with key " + shorten(f.key) + " of " + f.id().String()
	case f.group != "":
		return "the dead letters of " + f.id().String() + " with errors like " + strconv.Quote(f.group)
	case f.errorText != "":
		return "the dead letters of " + f.id().String() + " whose error contains " + strconv.Quote(f.errorText)
	}
	return "all dead letters of " + f.id().String()
}

func parseForm(values url.Values) (formValues, error) {
	f := formValues{consumer: values.Get("consumer"), feed: values.Get("feed"), key: values.Get("key"),
		to: strings.TrimSpace(values.Get("to")), lease: values.Get("lease"), values: values,
		errorText: values.Get("error"), group: values.Get("group")}
	bad := func(name string) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: name, Cause: name + ": " +
			shorten(values.Get(name)) + " is not a number", Next: "go back and use the form of the page"}
	}
	if text := values.Get("shard"); text != "" {
		shard, err := strconv.Atoi(text)
		if err != nil {
			return f, bad("shard")
		}
		f.shard = &shard
	}
	if text := values.Get("epoch"); text != "" {
		var err error
		if f.epoch, err = strconv.ParseInt(text, 10, 64); err != nil {
			return f, bad("epoch")
		}
	}
	return f, nil
}

// needs returns a check that the fields are not empty.
func needs(names ...string) func(formValues) error {
	return func(f formValues) error {
		for _, name := range names {
			if strings.TrimSpace(f.values.Get(name)) == "" {
				return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: name, Cause: name + ": it is empty",
					Next: "go back and fill it in"}
			}
		}
		return nil
	}
}
