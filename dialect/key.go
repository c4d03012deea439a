package dialect

import (
	"encoding/binary"
	"encoding/json"

	"github.com/rowfeed/rowfeed/feedtype"
)

// DecodeKey returns the key values that EncodeKey has written.
func DecodeKey(text string) (key []any, err error) {
	var values []json.RawMessage
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, err
	}
	for _, data := range values {
		v, err := feedtype.ParseValue(feedtype.Dynamic, data)
		if err != nil {
			return nil, err
		}
		key = append(key, v)
	}
	return key, nil
}

// EncodeKey writes raw key values as JSON, from which DecodeKey reads the same values.
func EncodeKey(key []any) string {
	dst := []byte{'['}
	for i, v := range key {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = feedtype.AppendValue(dst, feedtype.Dynamic, v)
	}
	return string(append(dst, ']'))
}

// KeyIdentity returns a string that is equal for two keys only if all their values are equal.
func KeyIdentity(key []any) string { return string(AppendIdentity(nil, key)) }

// AppendIdentity appends each value, followed by its length in 4 bytes. Read from the end, the lengths tell
// where each value begins.
func AppendIdentity(id []byte, key []any) []byte {
	for _, v := range key {
		start := len(id)
		id = feedtype.AppendValue(id, feedtype.Dynamic, v)
		id = binary.BigEndian.AppendUint32(id, uint32(len(id)-start))
	}
	return id
}
