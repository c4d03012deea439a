package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rowfeed/rowfeed/internal/test/docs"
)

// TestSchemaMatchesTheStruct: the struct has the keys of the schema, with the same types.
func TestSchemaMatchesTheStruct(t *testing.T) {
	top, err := root()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, top, top, reflect.TypeFor[File](), "")
}

func compare(t *testing.T, top, object *property, of reflect.Type, path string) {
	t.Helper()
	var fields []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		fields = append(fields, name)
		p := object.Properties.find(name)
		if p == nil {
			t.Errorf("schema.json lacks %s%s, which the loader accepts", path, name)
			continue
		}
		if p = p.resolved(top); p.Description == "" || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("schema.json: %s%s has no description that is a sentence", path, name)
		}
		kind := of.Field(i).Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer",
			reflect.Int64: "integer", reflect.Float64: "number", reflect.Slice: "array",
			reflect.Struct: "object"}[kind.Kind()]
		if kind == reflect.TypeFor[time.Duration]() {
			want = "string"
		}
		if !slices.Equal(p.Type, types{want}) {
			t.Errorf("schema.json: %s%s is %v, the loader accepts %s", path, name, p.Type, want)
		}
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct {
			compare(t, top, p.Items.resolved(top), kind.Elem(), path+name+"[].")
		}
		if kind.Kind() == reflect.Struct {
			compare(t, top, p, kind, path+name+".")
		}
	}
	for _, p := range object.Properties {
		if !slices.Contains(fields, p.name) {
			t.Errorf("schema.json has %s%s, which the loader does not know", path, p.name)
		}
	}
}

// TestSchemaAndLoaderAgree: a validator that only has the schema accepts the same files as the loader.
func TestSchemaAndLoaderAgree(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rowfeed.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rowfeed.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	relay := "relays:\n  - feed: kv\n    to: stdout\n    "
	for _, f := range []struct {
		text string
		good bool
	}{
		{"", true},
		{"db: sqlite:shop.db\nprefix: ''\nschema: s\nlisten: :9000\n", true},
		{"db:\nrelays:\n", true},
		{"relays: []\n", true},
		{relay + "consumer: c\n", true},
		{relay + "after: at:2026-01-31T12:00:00Z\n    limit: 10000\n    rate: 2.5\n", true},
		{relay + "lease: 1m30s\n    secret: [env:A, file:b]\n    set_aside: true\n    restart: " +
			"false\n    allow_private: true\n", true},
		{relay + "rate: 3\n", true},
		{relay + "lease: 1.5h\n", true},
		{"- db\n", false},
		{"text\n", false},
		{"colour: red\n", false},
		{"DB: sqlite:shop.db\n", false},
		{"db: [a]\n", false},
		{"db: {a: b}\n", false},
		{"relays: {feed: kv, to: stdout}\n", false},
		{"relays: [kv]\n", false},
		{"relays:\n  - feed: kv\n", false},
		{"relays:\n  - to: stdout\n", false},
		{"relays:\n  - {feed: '', to: stdout}\n", false},
		{relay + "colour: red\n", false},
		{relay + "limit: 0\n", false},
		{relay + "limit: 10001\n", false},
		{relay + "limit: -1\n", false},
		{relay + "limit: many\n", false},
		{relay + "shard_count: 0\n", false},
		{relay + "shard_count: 1.5\n", false},
		{relay + "shard_count: 1e1\n", false},
		{relay + "set_aside: maybe\n", false},
		{relay + "set_aside: 1\n", false},
		{relay + "lease: 10\n", false},
		{relay + "lease: -10s\n", false},
		{relay + "lease: soon\n", false},
		{relay + "secret: env:A\n", false},
		{relay + "secret: ['']\n", false},
		{relay + "rate: -1\n", false},
		{relay + "rate: fast\n", false},
	} {
		var decoded any
		if err := yaml.Unmarshal([]byte(f.text), &decoded); err != nil {
			t.Fatalf("%q: %v", f.text, err)
		}
		text, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		bySchema := schema.Validate(instance)
		_, byLoader := Parse(FileName, []byte(f.text))
		if (bySchema == nil) != f.good || (byLoader == nil) != f.good {
			t.Errorf("%q is good: %v\nschema: %v\nloader: %v", f.text, f.good, bySchema, byLoader)
		}
		if byLoader != nil && !strings.Contains(byLoader.Error(), "Next: ") {
			t.Errorf("%q: no next step: %v", f.text, byLoader)
		}
	}
}

// TestInvalidValuesAreNotShown: an invalid value may be a secret at the wrong key.
func TestInvalidValuesAreNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"relays:\n  - feed: kv\n    to: stdout\n    lease: hunter22\n": "config rowfeed.yaml:4: relays[0].lease: " +
			"the value is not a time as 10s or 1m30s. Next: give a time as 10s or 1m30s, or see " +
			"`rowfeed config reference`",
		"relays:\n  - feed: kv\n    secret: [hunter22]\n": "config rowfeed.yaml:2: relays[0]: the key to is missing. " +
			"Next: give it; a relay needs feed and to",
		"relays:\n  - feed: kv\n    to: https://u:hunter22@h/\n    lease: hunter22\n": "relays[0].lease: " +
			"the value is not a time",
		"relays:\n  - {feed: kv, to: 'https://u:hunter22@h/', limit: 99999}\n": "config rowfeed.yaml:2: " +
			"relays[0].limit: 99999 is not a whole number between 1 and 10000",
		"relays:\n  - feed: kv\n    to: stdout\n    secret:\n      - hunter22\n      - ''\n": "relays[0].secret[1]: " +
			"the value is not text",
	} {
		_, err := Parse(FileName, []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q\n got: %v\nwant: %s", text, err, want)
		}
	}
}

// TestDocumentedConfigurationsAreValid: every rowfeed.yaml in a document is valid.
func TestDocumentedConfigurationsAreValid(t *testing.T) {
	documents, err := docs.Documents("../../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, document := range documents {
		blocks, _, err := docs.Read("../../..", document)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if b.Language != "yaml" || !strings.HasPrefix(b.Text, "# "+FileName) {
				continue
			}
			found++
			if _, err := Parse(document, []byte(b.Text)); err != nil {
				t.Errorf("%s:%d: %v", document, b.Line, err)
			}
		}
	}
	if found == 0 {
		t.Error("no file was found")
	}
}
