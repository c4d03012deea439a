package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/internal/test/testtls"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secured is a server with TLS, and the files of its certificate.
type secured struct {
	*running
	of        *testtls.Authority
	cert, key string
}

func runSecured(t *testing.T, x *fixture, cfg server.Config) *secured {
	t.Helper()
	folder := t.TempDir()
	s := &secured{of: testtls.New(t, "servers"), cert: filepath.Join(folder, "cert.pem"),
		key: filepath.Join(folder, "key.pem")}
	s.of.Sign(t, "first.example", s.cert, s.key)
	if cfg.TLS == nil {
		cfg.TLS = &server.TLS{}
	}
	cfg.DB, cfg.TLS.Cert, cfg.TLS.Key = x.db, s.cert, s.key
	s.running = run(t, cfg)
	s.url = "https" + strings.TrimPrefix(s.url, "http")
	return s
}

// transport returns a transport that trusts the server's authority, and uses HTTP/2.
func (s *secured) transport(name string) *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(s.of.Cert)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}, ForceAttemptHTTP2: true}
}

// ask sends a request to the name on a new connection. change changes the TLS settings of the client.
func (s *secured) ask(t *testing.T, name string, change func(*tls.Config)) (*http.Response, error) {
	t.Helper()
	transport := s.transport(name)
	if transport.DisableKeepAlives = true; change != nil {
		change(transport.TLSClientConfig)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

// TestOldTLSVersionsAreRefused (O2): the server supports TLS 1.2 and 1.3, no older version, and answers plain HTTP with
// an error.
func TestOldTLSVersionsAreRefused(t *testing.T) {
	x := newFixture(t)
	s := runSecured(t, x, server.Config{})
	resp, err := s.ask(t, "first.example", nil)
	if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 || resp.TLS.Version != tls.VersionTLS13 {
		t.Fatal(resp, err)
	}
	resp, err = s.ask(t, "first.example", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	if err != nil || resp.TLS.Version != tls.VersionTLS12 {
		t.Fatal(resp, err)
	}
	_, err = s.ask(t, "first.example",
		func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	if err == nil || !strings.Contains(err.Error(), "remote error: tls: protocol version not supported") {
		t.Errorf("TLS 1.1: %v", err)
	}
	plain, err := http.Get("http" + strings.TrimPrefix(s.url, "https") + "/_feeds")
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != 400 {
		t.Errorf("without TLS: %s", plain.Status)
	}
}

// TestServesByHTTP2: one connection carries a stream, a waiting page and other requests at the same time, and all of
// them end in order with the server.
func TestServesByHTTP2(t *testing.T) {
	x := newFixture(t)
	s := runSecured(t, x, server.Config{Publish: true})
	s.client = &http.Client{Transport: s.transport("first.example")}
	var connections atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			connections.Add(1)
		}
	}})
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
		if err != nil {
			t.Error(err)
		}
		resp, err := s.client.Do(req)
		if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Errorf("%s: %+v, %v", path, resp, err)
			return &http.Response{Body: http.NoBody}
		}
		return resp
	}
	stream := get("/_feeds/stream/kv")
	defer stream.Body.Close()
	waits := make(chan string, 1)
	go func() {
		resp := get("/_feeds/fetch/kv?wait=1m")
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		waits <- string(body)
	}()
	get("/_feeds").Body.Close()
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	if body := <-waits; !strings.Contains(body, `"position":"1"`) {
		t.Errorf("the waiting request got %q", body)
	}
	events := bufio.NewReader(stream.Body)
	for line := ""; !strings.HasPrefix(line, "id: 1."); {
		var err error
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatalf("the stream: %q, %v", line, err)
		}
	}
	s.stop()
	if _, err := io.ReadAll(events); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestCertificatesAreReplacedWhileServerRuns: certificates can be replaced while the server runs, and incomplete files
// do not affect it.
func TestCertificatesAreReplacedWhileServerRuns(t *testing.T) {
	x := newFixture(t)
	var log logged
	again := make(chan struct{})
	s := runSecured(t, x, server.Config{Log: log.logger(), TLS: &server.TLS{Reload: again}})
	serves := func(name string) {
		t.Helper()
		if _, err := s.ask(t, name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	serves("first.example")
	write(t, s.cert, "half")
	serves("first.example")
	if !strings.Contains(log.String(), "the server keeps the previous ones") {
		t.Error("nothing was logged: ", log.String())
	}
	s.of.Sign(t, "second.example", s.cert, s.key)
	serves("second.example")

	// A change that keeps the file's size and time is read when Reload asks for it.
	info, err := os.Stat(s.cert)
	if err != nil {
		t.Fatal(err)
	}
	keyInfo, err := os.Stat(s.key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // the lengths of signatures vary
		s.of.Sign(t, "third3.example", s.cert, s.key)
		now, err := os.Stat(s.cert)
		if err != nil {
			t.Fatal(err)
		}
		if now.Size() == info.Size() {
			break
		} else if i == 199 {
			t.Fatal("no certificate has the same size")
		}
	}
	for path, as := range map[string]os.FileInfo{s.cert: info, s.key: keyInfo} {
		if err := os.Chtimes(path, as.ModTime(), as.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	serves("second.example")
	again <- struct{}{}
	again <- struct{}{} // the first reload has completed
	serves("third3.example")
}

// TestClientsWithoutCertificateAreRefused: a client without a certificate, or with one of another authority, is
// refused.
func TestClientsWithoutCertificateAreRefused(t *testing.T) {
	x := newFixture(t)
	folder := t.TempDir()
	clients, strangers := testtls.New(t, "clients"), testtls.New(t, "strangers")
	ca := filepath.Join(folder, "ca.pem")
	clients.Write(t, ca)
	s := runSecured(t, x, server.Config{TLS: &server.TLS{ClientCA: ca}})
	with := func(of *testtls.Authority) func(*tls.Config) {
		cert, key := filepath.Join(folder, "c.pem"), filepath.Join(folder, "k.pem")
		of.Sign(t, "reader", cert, key)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return func(c *tls.Config) { // even if the server names other authorities
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
	}
	if resp, err := s.ask(t, "first.example", with(clients)); err != nil || resp.StatusCode != 200 {
		t.Errorf("a client: %v", err)
	}
	for who, change := range map[string]func(*tls.Config){
		"nobody": nil, "a stranger": with(strangers), "the server": with(s.of),
	} {
		if resp, err := s.ask(t, "first.example", change); err == nil {
			t.Errorf("%s got %s", who, resp.Status)
		}
	}
	// Authorities can be replaced, too, also for a client that resumes a session of the old ones.
	begun := tls.NewLRUClientSessionCache(0)
	resuming := func(c *tls.Config) {
		with(clients)(c)
		c.ClientSessionCache = begun
	}
	for i := range 2 {
		if resp, err := s.ask(t, "first.example", resuming); err != nil || resp.TLS.DidResume != (i == 1) {
			t.Fatalf("session %d: %v", i, err)
		}
	}
	strangers.Write(t, ca)
	if _, err := s.ask(t, "first.example", with(clients)); err == nil {
		t.Error("a removed authority is still accepted")
	}
	if _, err := s.ask(t, "first.example", resuming); err == nil {
		t.Error("its sessions still count")
	}
	if _, err := s.ask(t, "first.example", with(strangers)); err != nil {
		t.Error(err)
	}
}

// TestInvalidTLSFilesPreventStart: a server with invalid files does not start, and never without TLS.
func TestInvalidTLSFilesPreventStart(t *testing.T) {
	x := newFixture(t)
	folder := t.TempDir()
	of := testtls.New(t, "servers")
	cert, key, other, empty := filepath.Join(folder,
		"c"), filepath.Join(folder, "k"), filepath.Join(folder, "o"), filepath.Join(folder, "e")
	of.Sign(t, "a.example", cert, other)
	of.Sign(t, "a.example", cert, key)
	write(t, empty, "")
	for want, files := range map[string]server.TLS{
		"tls-cert":      {Cert: cert},
		"tls-key":       {Key: key},
		"client":        {ClientCA: cert},
		"absent":        {Cert: filepath.Join(folder, "absent"), Key: key},
		"another's key": {Cert: cert, Key: other},
		"empty":         {Cert: cert, Key: key, ClientCA: empty},
		"no authority":  {Cert: cert, Key: key, ClientCA: filepath.Join(folder, "absent")},
	} {
		err := refusal(t, server.Config{DB: x.db, Listen: "127.0.0.1:0", TLS: &files})
		if !errors.Is(err, rowfeed.InvalidRequest) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
