// Package config reads rowfeed.yaml and decides which setting holds: a flag, the
// environment, the file, the default, in this order.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/rowfeed/rowfeed"
)

const (
	// FileName is looked for in the working directory.
	FileName = "rowfeed.yaml"
	// DefaultDB is the database when nobody names one.
	DefaultDB = "sqlite:rowfeed.db"
	// DefaultListen is the address of `rowfeed serve`.
	DefaultListen = "127.0.0.1:8080"
	// EnvDB is the environment variable with the database's URL.
	EnvDB = "ROWFEED_DB"
)

// File is rowfeed.yaml. A nil field was not given.
type File struct {
	DB     *string `yaml:"db"`
	Prefix *string `yaml:"prefix"` // may be empty: no prefix
	Schema *string `yaml:"schema"`
	Listen *string `yaml:"listen"`
	Relays []Relay `yaml:"relays"` // run by `rowfeed serve`

	Path string `yaml:"-"` // of the file
}

// Relay is one of the relays that `rowfeed serve` runs; see `rowfeed relay --help`.
type Relay struct {
	Feed         string        `yaml:"feed"`
	To           string        `yaml:"to"`       // a URL, or env:NAME, or file:PATH
	Consumer     string        `yaml:"consumer"` // default: made of the URL
	After        string        `yaml:"after"`
	Limit        int           `yaml:"limit"`
	ShardCount   int           `yaml:"shard_count"` // default: as many as it has, 1 if it is new
	SetAside     bool          `yaml:"set_aside"`
	Restart      bool          `yaml:"restart"`
	Lease        time.Duration `yaml:"lease"`  // as in 10s
	Secret       []string      `yaml:"secret"` // each a value, or env:NAME, or file:PATH
	AllowPrivate bool          `yaml:"allow_private"`
	Rate         float64       `yaml:"rate"`
}

// keys are File's, for messages.
const keys = "db, prefix, schema, listen and relays; `rowfeed relay --help` has those of a relay"

// Error is something wrong with a configuration file.
type Error struct {
	Path  string
	Line  int // 0 where none is known
	Cause string
	Next  string
}

func (e *Error) Error() string {
	at := e.Path
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	return fmt.Sprintf("config %s: %s. Next: %s", at, e.Cause, e.Next)
}

// Load reads the file at path. An empty path means FileName in the working
// directory, which may be missing; a file that was asked for may not.
func Load(path string) (*File, error) {
	asked := path != ""
	if !asked {
		path = FileName
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return &File{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Path: path, Cause: "there is no such file", Next: "check the path given with --config"}
	case err != nil:
		return nil, &Error{Path: path, Cause: fmt.Sprintf("it cannot be read: %v", err), Next: "check the file's rights"}
	}
	return parse(path, data)
}

func parse(path string, data []byte) (*File, error) {
	f := File{Path: path}
	decoder := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField())
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(path, err)
	}
	if err := f.checkShardCounts(data); err != nil {
		return nil, err
	}
	return &f, nil
}

// checkShardCounts refuses what is no number of shards. A fraction was cut off when it was
// decoded, and a 0 looks like a key that was not given: the text is read once more.
func (f *File) checkShardCounts(data []byte) error {
	for i, r := range f.Relays {
		refuse := func(line int, value string) error {
			return &Error{Path: f.Path, Line: line, Cause: fmt.Sprintf("shard_count: %s is not a whole number between 1 and %d", value, rowfeed.MaxDataShards),
				Next: fmt.Sprintf("give relay %d the number of shards that its processes share, at most the feed's data shards, or leave the key out", i+1)}
		}
		at, err := yaml.PathString(fmt.Sprintf("$.relays[%d].shard_count", i))
		if err != nil {
			return err
		}
		node, err := at.ReadNode(bytes.NewReader(data))
		if err == nil {
			switch node.(type) {
			case *ast.FloatNode, *ast.IntegerNode, *ast.StringNode:
				value := node.GetToken().Value
				if n, err := strconv.ParseInt(value, 0, 64); err != nil || n < 1 || n > rowfeed.MaxDataShards {
					return refuse(node.GetToken().Position.Line, value)
				}
			}
		}
		if r.ShardCount < 0 || r.ShardCount > rowfeed.MaxDataShards { // of an alias
			return refuse(0, fmt.Sprint(r.ShardCount))
		}
	}
	return nil
}

// explain names line and key, and shows nothing else of the file, which may hold a
// password.
func explain(path string, err error) *Error {
	e := &Error{Path: path, Cause: "it is no list of keys and values in YAML, each key once", Next: "the keys are " + keys}
	var known yaml.Error
	if !errors.As(err, &known) {
		return e
	}
	token := known.GetToken()
	if token == nil {
		return e
	}
	e.Line = token.Position.Line
	var unknown *yaml.UnknownFieldError
	var wrongType *yaml.TypeError
	switch {
	case errors.As(err, &unknown):
		e.Cause = fmt.Sprintf("there is no key %q", token.Value)
	case errors.As(err, &wrongType):
		e.Cause = "the value is not of the type that the key asks for"
	}
	return e
}

// First is the first of the values that is given, or otherwise.
func First(otherwise string, values ...*string) string {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return otherwise
}
