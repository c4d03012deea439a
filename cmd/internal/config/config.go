// Package config reads rowfeed.yaml, and decides which value of a setting applies: that of the flag, the environment,
// the file, or the default, in this order.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/goccy/go-yaml"
)

const (
	// FileName is the name of the file in the working directory.
	FileName = "rowfeed.yaml"
	// DefaultDB is the database if none is given.
	DefaultDB = "sqlite:rowfeed.db"
	// DefaultListen is the address of `rowfeed serve`.
	DefaultListen = "127.0.0.1:8080"
	// EnvDB is the environment variable with the database's URL.
	EnvDB = "ROWFEED_DB"
)

// File is rowfeed.yaml. A nil field was not given. The schema describes each key.
type File struct {
	DB     *string `yaml:"db"`
	Prefix *string `yaml:"prefix"` // may be empty: no prefix
	Schema *string `yaml:"schema"`
	Listen *string `yaml:"listen"`
	Auth   *string `yaml:"auth"` // of `rowfeed serve`: tokens or none

	Metrics *string `yaml:"metrics"` // of `rowfeed publish` and `rowfeed relay`

	LogFormat *string `yaml:"log_format"`
	LogLevel  *string `yaml:"log_level"`

	AllowHosts  []string `yaml:"allow_hosts"`
	TLSCert     *string  `yaml:"tls_cert"`
	TLSKey      *string  `yaml:"tls_key"`
	TLSClientCA *string  `yaml:"tls_client_ca"`

	// Of the limits of a server, 0 means the default.
	Rate                     float64 `yaml:"rate"`
	Burst                    int     `yaml:"burst"`
	MaxConnections           int     `yaml:"max_connections"`
	MaxConnectionsPerAddress int     `yaml:"max_connections_per_address"`
	MaxWaiting               int     `yaml:"max_waiting"`
	MaxWaitingPerClient      int     `yaml:"max_waiting_per_client"`

	Relays []Relay `yaml:"relays"` // run by `rowfeed serve`

	Path string `yaml:"-"` // of the file
}

// Relay is one of the relays that `rowfeed serve` runs; see `rowfeed relay --help`.
type Relay struct {
	Feed         string        `yaml:"feed"`
	To           string        `yaml:"to"`       // a URL, env:NAME or file:PATH
	Consumer     string        `yaml:"consumer"` // default: derived from the URL
	After        string        `yaml:"after"`
	Limit        int           `yaml:"limit"`
	ShardCount   int           `yaml:"shard_count"` // default: the existing number, 1 for a new relay
	SetAside     bool          `yaml:"set_aside"`
	Restart      bool          `yaml:"restart"`
	Lease        time.Duration `yaml:"lease"`  // for example 10s
	Secret       []string      `yaml:"secret"` // each a value, env:NAME or file:PATH
	AllowPrivate bool          `yaml:"allow_private"`
	Rate         float64       `yaml:"rate"`
}

// Error is one mistake in a configuration file.
type Error struct {
	Path  string
	Line  int // 0 if it is unknown
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

// Load reads the file at path. An empty path means FileName in the working directory, which may be missing. A path that
// was given must exist.
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
	case isDirectory(path):
		return nil, &Error{Path: path, Cause: "it is a directory", Next: "name a file"}
	case err != nil:
		return nil, &Error{Path: path, Cause: fmt.Sprintf("it cannot be read: %v", err),
			Next: "check the file's rights"}
	}
	return Parse(path, data)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Parse reads the text of a file. Messages call it path. The error names all mistakes.
func Parse(path string, data []byte) (*File, error) {
	if err := check(path, data); err != nil {
		return nil, err
	}
	f := File{Path: path}
	if err := decode(data, &f); err != nil {
		return nil, notYAML(path, err)
	}
	return &f, nil
}

// errDocuments is the error for a text with several YAML documents, of which the library reads only the first.
var errDocuments = errors.New("there are several YAML documents")

// decode reads YAML. An empty text sets nothing. The library panics on some texts (a list with an unknown tag): decode
// refuses them.
func decode(data []byte, into any, options ...yaml.DecodeOption) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the YAML library cannot read it")
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data), options...)
	if err = d.Decode(into); errors.Is(err, io.EOF) {
		return nil
	}
	var more any
	if err == nil && !errors.Is(d.Decode(&more), io.EOF) {
		return errDocuments
	}
	return err
}

// First returns the first value that is given, or otherwise.
func First(otherwise string, values ...*string) string {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return otherwise
}
