package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON schema of rowfeed.yaml: its keys, and the values that they accept. The loader and editors use it,
// and Reference makes its text from it.
//
//go:embed schema.json
var Schema []byte

// validate compares the file's text with the schema. The error names the first invalid key with its line.
func validate(path string, data []byte) error {
	var decoded any
	if err := decode(data, &decoded); err != nil {
		return explain(path, err)
	}
	text, err := json.Marshal(decoded)
	if err != nil { // .nan and .inf, which YAML allows
		return &Error{Path: path, Cause: "it has a value that is no number, text, list or list of keys",
			Next: "write numbers in digits; `rowfeed config reference` explains every key"}
	}
	var instance any
	if err := json.Unmarshal(text, &instance); err != nil {
		return err
	}
	if ok, err := fits("", instance); ok || err != nil {
		return err
	}
	top, err := root()
	if err != nil {
		return err
	}
	at, err := misfit(top, top, "", instance, []string{})
	if err != nil {
		return err
	}
	return unfit(path, data, instance, at)
}

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

// misfit returns the location of the first value that does not match the schema, the innermost first. It is nil if all
// match.
func misfit(top, p *property, place string, value any, at []string) ([]string, error) {
	if p.Ref != "" {
		p, place = p.resolved(top), strings.TrimPrefix(p.Ref, "#")
	}
	switch v := value.(type) {
	case map[string]any:
		for _, next := range p.Properties {
			if inner, given := v[next.name]; given {
				if found, err := misfit(top, next.property, place+"/properties/"+
					next.name, inner, append(slices.Clip(at), next.name)); found != nil || err != nil {
					return found, err
				}
			}
		}
	case []any:
		for i, inner := range v {
			if p.Items == nil {
				break
			}
			if found, err := misfit(top, p.Items, place+
				"/items", inner, append(slices.Clip(at), strconv.Itoa(i))); found != nil || err != nil {
				return found, err
			}
		}
	}
	if ok, err := fits(place, value); ok || err != nil {
		return nil, err
	}
	return at, nil
}

// unfit says what the key accepts. It shows the value only if it is a number: a text may be a password.
func unfit(path string, data []byte, instance any, location []string) error {
	p, err := propertyAt(location)
	if err != nil {
		return err
	}
	at := yamlPath(location)
	e := &Error{Path: path, Line: lineOf(data, at), Next: "`rowfeed config reference` explains every key"}
	if p.Description != "" {
		e.Next = "give " + p.expects() + ", or see `rowfeed config reference`"
	}
	value, found := valueAt(instance, location)
	object, isObject := value.(map[string]any)
	for _, name := range p.Required {
		if _, given := object[name]; isObject && found && !given {
			e.Cause, e.Next = fmt.Sprintf("%s: %s is missing", at, name), "give it; a relay needs "+
				strings.Join(p.Required, " and ")
			return e
		}
	}
	shown := "it"
	if number, ok := value.(float64); ok {
		shown = strconv.FormatFloat(number, 'f', -1, 64)
	}
	e.Cause = fmt.Sprintf("%s: %s is not %s", at, shown, p.expects())
	return e
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

// lineOf returns the line of a value, or 0 if it is unknown.
func lineOf(data []byte, at string) int {
	query, err := yaml.PathString("$." + at)
	if err != nil {
		return 0
	}
	node, err := query.ReadNode(bytes.NewReader(data))
	if err != nil || node == nil || node.GetToken() == nil {
		return 0
	}
	return node.GetToken().Position.Line
}

func valueAt(value any, location []string) (any, bool) {
	for _, part := range location {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[part]
			if !ok {
				return nil, false
			}
			value = inner
		case []any:
			i := 0
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

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

// propertyAt returns the property of a location in the file.
func propertyAt(location []string) (*property, error) {
	top, err := root()
	if err != nil {
		return nil, err
	}
	p := top
	for _, part := range location {
		next := p.Properties.find(part)
		if isIndex(part) {
			next = p.Items
		}
		if next == nil {
			return p, nil
		}
		p = next.resolved(top)
	}
	return p, nil
}
