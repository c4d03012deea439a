package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON schema of rowfeed.yaml: its keys, and the values that they accept. The loader and editors use it,
// and Reference makes its text from it.
//
//go:embed schema.json
var Schema []byte

// fits reports whether a value matches the schema at a location in it (a JSON pointer). The library compiles nothing
// until it is called. Another one compiled at each start of rowfeed, for longer than most commands take.
func fits(place string, value any) (bool, error) {
	var all jsonschema.Schema
	if err := json.Unmarshal(Schema, &all); err != nil {
		return false, err
	}
	part := jsonschema.Schema{Ref: all.ID + "#" + place}
	resolved, err := part.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) {
		return &all, nil
	}})
	if err != nil {
		return false, err
	}
	return resolved.Validate(value) == nil, nil // its errors show values, and no location
}

// yamlPath formats a location: relays[1].shard_count.
func yamlPath(location []string) string {
	text := ""
	for _, part := range location {
		switch {
		case isIndex(part):
			text += "[" + part + "]"
		case text == "":
			text = part
		default:
			text += "." + part
		}
	}
	return text
}

func isIndex(part string) bool { return part != "" && strings.Trim(part, "0123456789") == "" }

// property is the part of the schema that messages and the reference need.
type property struct {
	Title       string               `json:"title"`
	Description string               `json:"description"`
	Type        types                `json:"type"`
	Default     json.RawMessage      `json:"default"`
	Examples    []json.RawMessage    `json:"examples"`
	Enum        []string             `json:"enum"`
	Required    []string             `json:"required"`
	Expects     string               `json:"x-expects"`
	Ref         string               `json:"$ref"`
	Items       *property            `json:"items"`
	Properties  orderedProperties    `json:"properties"`
	Defs        map[string]*property `json:"$defs"`
}

// types are the JSON names of the types. Null, for a key that was not given, is left out.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	var many []string
	if json.Unmarshal(data, &many) != nil {
		many = []string{""}
		if err := json.Unmarshal(data, &many[0]); err != nil {
			return err
		}
	}
	*t = slices.DeleteFunc(many, func(name string) bool { return name == "null" })
	return nil
}

// expects says what the key accepts, for messages.
func (p *property) expects() string {
	kinds := map[string]string{"string": "text", "boolean": "true or false", "integer": "a whole number",
		"number": "a number", "array": "a list", "object": "a list of keys and values"}
	switch {
	case p.Expects != "":
		return p.Expects
	case len(p.Enum) > 0:
		return strings.Join(p.Enum, " or ")
	}
	var all []string
	for _, name := range p.Type {
		all = append(all, kinds[name])
	}
	return strings.Join(all, " or ")
}

// orderedProperties returns an object's properties, in the order of the schema's text.
type orderedProperties []namedProperty

type namedProperty struct {
	name string
	*property
}

func (o *orderedProperties) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		p := &property{}
		if err := d.Decode(p); err != nil {
			return err
		}
		*o = append(*o, namedProperty{fmt.Sprint(name), p})
	}
	return nil
}

func (o orderedProperties) find(name string) *property {
	for _, p := range o {
		if p.name == name {
			return p.property
		}
	}
	return nil
}

var root = sync.OnceValues(func() (*property, error) {
	p := &property{}
	return p, json.Unmarshal(Schema, p)
})

// resolved follows a reference to $defs.
func (p *property) resolved(top *property) *property {
	if name, ok := strings.CutPrefix(p.Ref, "#/$defs/"); ok {
		return top.Defs[name]
	}
	return p
}
