package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
	"github.com/rowfeed/rowfeed/cmd/internal/nearest"
)

const seeReference = "`rowfeed config reference` explains every key"

// check compares the text of a file with the schema. Its error joins an Error for each mistake, in the order of their
// lines.
func check(path string, data []byte) error {
	c := checker{path: path, data: data}
	var decoded any
	if err := decode(data, &decoded); err != nil {
		// The library reports a key that is given twice as a syntax error.
		if decode(data, &decoded, yaml.AllowDuplicateMapKey()) != nil {
			return notYAML(path, err)
		}
		name, line := tokenOf(err)
		c.add(nil, line, fmt.Sprintf("the key %q is given more than once", name), "give each key once")
	}
	text, err := json.Marshal(decoded)
	if err != nil { // .nan and .inf, which YAML allows
		return &Error{Path: path, Cause: "it has a value that is no number, text, list or list of keys",
			Next: "write numbers in digits; " + seeReference}
	}
	var instance any
	if err := json.Unmarshal(text, &instance); err != nil {
		return err
	}
	// Most files are valid. To find the mistakes of the others, parts of the schema are compiled again and again.
	if ok, err := fits("", instance); ok && len(c.mistakes) == 0 || err != nil {
		return err
	}
	top, err := root()
	if err != nil {
		return err
	}
	if err := c.compare(top, top, "", instance, nil); err != nil {
		return err
	}
	slices.SortStableFunc(c.mistakes, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var all []error
	for _, m := range c.mistakes {
		all = append(all, m)
	}
	return errors.Join(all...)
}

// notYAML names the line of a text that is not YAML. It shows nothing of the text, which may contain a password.
func notYAML(path string, err error) *Error {
	if errors.Is(err, errDocuments) {
		return &Error{Path: path, Cause: "it has more than one YAML document",
			Next: "remove the lines ---, and write all keys in one document"}
	}
	e := &Error{Path: path, Cause: "it is not valid YAML", Next: "write it as lines of the form `key: value`; " +
		seeReference}
	_, e.Line = tokenOf(err)
	return e
}

// tokenOf returns the text and the line that an error of the library is about, or 0 if there is none.
func tokenOf(err error) (text string, line int) {
	var known yaml.Error
	if !errors.As(err, &known) || known.GetToken() == nil {
		return "", 0
	}
	return known.GetToken().Value, known.GetToken().Position.Line
}

// checker collects the mistakes of a file.
type checker struct {
	path     string
	data     []byte
	mistakes []*Error
}

// add adds a mistake of the value at a location.
func (c *checker) add(at []string, line int, cause, next string) {
	if len(at) > 0 {
		cause = yamlPath(at) + ": " + cause
	}
	c.mistakes = append(c.mistakes, &Error{Path: c.path, Line: line, Cause: cause, Next: next})
}

// compare collects the mistakes of a value and of all values in it. place is the location of p in the schema, and at
// that of the value in the file.
func (c *checker) compare(top, p *property, place string, value any, at []string) error {
	if p.Ref != "" {
		p, place = p.resolved(top), strings.TrimPrefix(p.Ref, "#")
	}
	before := len(c.mistakes)
	switch v := value.(type) {
	case map[string]any:
		if p.Properties != nil {
			c.names(p, v, at)
		}
		for _, next := range p.Properties {
			if inner, given := v[next.name]; given {
				if err := c.compare(top, next.property, place+"/properties/"+next.name, inner,
					append(slices.Clip(at), next.name)); err != nil {
					return err
				}
			}
		}
	case []any:
		for i, inner := range v {
			if p.Items == nil {
				break
			}
			if err := c.compare(top, p.Items, place+"/items", inner,
				append(slices.Clip(at), strconv.Itoa(i))); err != nil {
				return err
			}
		}
	}
	if len(c.mistakes) > before {
		return nil
	}
	ok, err := fits(place, value)
	if err == nil && !ok {
		c.add(at, c.lineOf(at), fmt.Sprintf("%s is not %s", shown(value), p.expects()),
			"give "+p.expects()+", or see `rowfeed config reference`")
	}
	return err
}

// names collects the keys of an object that do not exist, and those that are missing.
func (c *checker) names(p *property, object map[string]any, at []string) {
	var known []string
	for _, next := range p.Properties {
		known = append(known, next.name)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if p.Properties.find(name) != nil {
			continue
		}
		next := "the keys are " + strings.Join(known, ", ") + "; `rowfeed config reference` explains them"
		if near := nearest.Name(name, known); near != "" {
			next = fmt.Sprintf("write %q if you mean that key; %s", near, seeReference)
		}
		c.add(at, c.lineOf(append(slices.Clip(at), name)), fmt.Sprintf("there is no key %q", name), next)
	}
	for _, name := range p.Required {
		if _, given := object[name]; !given {
			c.add(at, c.lineOf(at), "the key "+name+" is missing",
				"give it; a relay needs "+strings.Join(p.Required, " and "))
		}
	}
}

// shown is a number, and "the value" for all others: a text may be a password.
func shown(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return "the value"
}

// lineOf returns the line of the value at a location, or 0 if it is unknown.
func (c *checker) lineOf(at []string) int {
	query := (&yaml.PathBuilder{}).Root()
	for _, part := range at {
		if i, err := strconv.ParseUint(part, 10, 0); err == nil {
			query = query.Index(uint(i))
		} else {
			query = query.Child(part)
		}
	}
	file, err := parser.ParseBytes(c.data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return 0
	}
	node, err := query.Build().FilterFile(file)
	if err != nil || node == nil || node.GetToken() == nil {
		return 0
	}
	return node.GetToken().Position.Line
}
