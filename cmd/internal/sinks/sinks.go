// Package sinks turns the URL of a relay's receiver into a sink, as cmd/internal/open does for databases.
//
//	stdout:                                  entry lines
//	https://host/hook                        webhook; also http://
//	nats://host:4222/subject                 JetStream; ?creds=FILE, ?tls=true
//	kafka://host:9092,host:9092/topic        ?tls=true&mechanism=scram-sha-256
//	postgres://host/database?table=orders    mirror; the URL of any database, and a table
package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/kafka"
	"github.com/rowfeed/rowfeed/cmd/sink/nats"
	"github.com/rowfeed/rowfeed/cmd/sink/sqlmirror"
	"github.com/rowfeed/rowfeed/cmd/sink/stdout"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
)

// Forms lists the forms of URLs, for messages.
const Forms = "stdout:, https://host/path, nats://host:4222/subject, " +
	"kafka://host:9092/topic or a database's URL with ?table=NAME"

// Options are the options of Open. Only To is required.
type Options struct {
	To string // a URL, resolved: see Resolve
	// Secrets sign the requests of a webhook.
	Secrets      []string
	AllowPrivate bool    // webhook
	Rate         float64 // webhook: requests per second; 0 means no limit
	Stdout       io.Writer
	// Library has rowfeed's settings in a mirror's database.
	Library rowfeed.Config
}

// Resolve returns the text itself, for "env:NAME" the value of that environment variable, and for "file:PATH" the
// content of the file without a line break at its end. So no secret has to be in a command line or a configuration
// file.
func Resolve(param, text string, getenv func(string) string) (string, error) {
	missing := func(cause, next string) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param, Cause: param + ": " + cause, Next: next}
	}
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if v := getenv(name); v != "" {
			return v, nil
		}
		return "", missing(fmt.Sprintf("the environment has no variable %q", name), "set it")
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", missing(fmt.Sprintf("the file %q cannot be read", path), "check its path and rights")
		}
		if v := strings.TrimRight(string(data), "\r\n"); v != "" {
			return v, nil
		}
		return "", missing(fmt.Sprintf("the file %q is empty", path), "write the value into it")
	}
	return text, nil
}

// DefaultName derives a relay's name from a URL. Different receivers have different names: two relays with the same
// name would share a cursor, and each entry would reach only one of them. Passwords and settings are ignored.
func DefaultName(to string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(to), ":")
	if scheme == "stdout" {
		return "stdout"
	}
	place, query, _ := strings.Cut(to, "?")
	if u, err := url.Parse(place); err == nil {
		u.User = nil
		place = u.String()
	}
	if values, err := url.ParseQuery(query); err == nil && IsMirror(to) {
		place += "?table=" + values.Get("table")
	}
	sum := sha256.Sum256([]byte(place))
	return scheme + "-" + hex.EncodeToString(sum[:4])
}

// Target returns the part of a URL that may be stored and shown to everyone: no user, no password, no query, and of a
// webhook no path. The path of a webhook is often its only secret.
func Target(to string) string {
	place, _, _ := strings.Cut(to, "?")
	u, err := url.Parse(place)
	if err != nil { // a password that is not encoded may be anywhere in it
		scheme, _, _ := strings.Cut(place, ":")
		return scheme + ":"
	}
	u.User, u.Fragment = nil, ""
	if isWebhook(to) {
		u.Path, u.RawPath = "", ""
	}
	return u.String()
}

func isWebhook(to string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(to), ":")
	return scheme == "http" || scheme == "https"
}

// IsMirror reports whether the URL is a database's.
func IsMirror(to string) bool {
	_, err := open.Dialect(to)
	return err == nil
}

// IsStdout reports whether the URL means this process's output.
func IsStdout(to string) bool {
	scheme, _, _ := strings.Cut(to, ":")
	return strings.EqualFold(scheme, "stdout")
}

// Open makes the sink. Closing the sink closes everything that Open has opened.
func Open(ctx context.Context, o Options) (sink.Sink, error) {
	if IsMirror(o.To) {
		return openMirror(ctx, o)
	}
	s, err := openReceiver(o)
	if err != nil {
		return nil, err
	}
	return scrubbing{s, o.To}, nil
}

// scrubbing removes the password of the receiver's URL from errors, which are logged and stored. It also removes a
// webhook's path and query: a receiver may repeat them in its answer.
type scrubbing struct {
	sink.Sink
	to string
}

func (s scrubbing) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	results := s.Sink.Deliver(ctx, batch)
	for i, r := range results {
		if r.Err != nil {
			results[i].Err = &scrubbed{s.scrub(r.Err.Error()), r.Err}
		}
	}
	return results
}

func (s scrubbing) scrub(text string) string {
	if u, err := url.Parse(s.to); err == nil && isWebhook(s.to) {
		parts := []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery}
		for _, values := range u.Query() {
			parts = append(parts, values...)
		}
		for _, part := range parts {
			if len(part) >= shortPart {
				text = strings.ReplaceAll(text, part, "***")
			}
		}
	}
	return open.ScrubText(s.to, text)
}

// shortPart is the length below which a part of a URL is no secret: every text contains "/".
const shortPart = 6

// scrubbed is an error with another text.
type scrubbed struct {
	text string
	error
}

func (s *scrubbed) Error() string { return s.text }
func (s *scrubbed) Unwrap() error { return s.error }

func openReceiver(o Options) (sink.Sink, error) {
	scheme, rest, _ := strings.Cut(o.To, ":")
	switch strings.ToLower(scheme) {
	case "stdout":
		if rest == "" {
			return stdout.New(o.Stdout), nil
		}
	case "http", "https":
		return webhook.New(webhook.Config{URL: o.To, Secrets: o.Secrets, AllowPrivate: o.AllowPrivate, Rate: o.Rate})
	case "nats":
		return openNATS(o.To)
	case "kafka":
		return openKafka(o.To)
	}
	return nil, malformed("it is not the URL of a receiver")
}

// malformed quotes nothing, because the error may be in the password.
func malformed(cause string) error {
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "to", Cause: "to: " + cause,
		Next: "write it like " + Forms}
}

// parse parses a URL, and refuses unknown parameters.
func parse(to string, known ...string) (*url.URL, url.Values, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return nil, nil, malformed("it cannot be read; " +
			"characters such as @ : / ? # % in a user or password must be percent-encoded (@ as %40)")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, malformed("the part after '?' is not a list of parameters")
	}
next:
	for name := range values {
		for _, k := range known {
			if name == k {
				continue next
			}
		}
		return nil, nil, malformed(fmt.Sprintf("there is no parameter %q, only %s", name, strings.Join(known, ", ")))
	}
	return u, values, nil
}

func openNATS(to string) (sink.Sink, error) {
	u, values, err := parse(to, "creds", "tls")
	if err != nil {
		return nil, err
	}
	secure, err := truth(values, "tls")
	if err != nil {
		return nil, err
	}
	servers := &url.URL{Scheme: "nats", User: u.User, Host: u.Host}
	if secure {
		servers.Scheme = "tls"
	}
	return nats.New(nats.Config{URL: servers.String(), Subject: strings.TrimPrefix(u.Path, "/"),
		CredentialsFile: values.Get("creds")})
}

func openKafka(to string) (sink.Sink, error) {
	u, values, err := parse(to, "tls", "mechanism")
	if err != nil {
		return nil, err
	}
	c := kafka.Config{Brokers: strings.Split(u.Host, ","), Topic: strings.TrimPrefix(u.Path, "/"),
		Mechanism: values.Get("mechanism")}
	if c.TLS, err = truth(values, "tls"); err != nil {
		return nil, err
	}
	if u.User != nil {
		c.User = u.User.Username()
		c.Password, _ = u.User.Password()
	}
	return kafka.New(c)
}

func truth(values url.Values, name string) (bool, error) {
	if !values.Has(name) {
		return false, nil
	}
	v, err := strconv.ParseBool(values.Get(name))
	if err != nil {
		return false, malformed(name + " is neither true nor false")
	}
	return v, nil
}

// mirror closes the pool with the sink.
type mirror struct {
	*sqlmirror.Sink
	pool io.Closer
}

func (m *mirror) Close() error {
	if err := m.Sink.Close(); err != nil {
		return err
	}
	return m.pool.Close()
}

// openMirror creates rowfeed's tables in the mirror's database if they are missing, because the cursor is stored there.
func openMirror(ctx context.Context, o Options) (sink.Sink, error) {
	to, table := MirrorOf(o.To)
	if table == "" {
		return nil, malformed("a database's URL must name the mirror table, ?table=NAME")
	}
	pool, d, err := open.Open(ctx, to, open.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	db, err := rowfeed.Open(ctx, pool, d, &o.Library)
	if err == nil {
		_, err = db.Migrate(ctx)
	}
	var s *sqlmirror.Sink
	if err == nil {
		s, err = sqlmirror.New(ctx, sqlmirror.Config{Pool: pool, Dialect: d, DB: db, Table: table})
	}
	if err != nil {
		pool.Close()
		return nil, open.Scrub(to, err)
	}
	return &mirror{s, pool}, nil
}

// MirrorOf removes the parameter table from a mirror's URL and returns it. The rest of the URL is unchanged.
func MirrorOf(to string) (database, table string) {
	place, query, _ := strings.Cut(to, "?")
	var others []string
	for _, part := range strings.Split(query, "&") {
		if v, ok := strings.CutPrefix(part, "table="); ok {
			if decoded, err := url.QueryUnescape(v); err == nil {
				v = decoded
			}
			table = v
		} else if part != "" {
			others = append(others, part)
		}
	}
	if len(others) > 0 {
		place += "?" + strings.Join(others, "&")
	}
	return place, table
}
