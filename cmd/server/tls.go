package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TLS says how a server shows who it is, and whether clients have to. Its files are read
// again when they have changed; connections that are there already stay as they are. The
// lowest version that is spoken is 1.2.
type TLS struct {
	// Cert and Key are PEM files: the certificate with its chain, and its private key.
	Cert, Key string
	// ClientCA is a PEM file of authorities: only a client with a certificate of one of
	// them gets through. What it may do is still for Access to say.
	ClientCA string
	// Reload, where it is set, has the files read again for each value that it gives,
	// whether they look changed or not.
	Reload <-chan struct{}
}

// certificates are TLS's files, as they were read last.
type certificates struct {
	TLS
	log *slog.Logger

	mu     sync.Mutex
	seen   [3]stamp // of the files, when they were last read
	config *tls.Config
}

// stamp tells a file from what it was before.
type stamp struct {
	modified time.Time
	size     int64
}

// readCertificates reads the files, which must be in order.
func readCertificates(t TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{TLS: t, log: log}
	if (t.Cert == "") != (t.Key == "") || t.Cert == "" {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "tls-cert",
			Cause: "TLS: a certificate and its private key belong together",
			Next:  "give both, --tls-cert and --tls-key"}
	}
	c.seen = c.stamps()
	config, err := c.read()
	c.config = config
	return c, err
}

func (c *certificates) stamps() (all [3]stamp) {
	for i, path := range []string{c.Cert, c.Key, c.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

// read makes a configuration of the files. A session that is taken up again is held against it like a
// new one: crypto/tls keeps the client's chain in it, and looks for its authority among those of now.
func (c *certificates) read() (*tls.Config, error) {
	failed := func(param, path string, err error) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param, Object: fmt.Sprintf("file %q", path),
			Cause: "TLS: it cannot be used", Err: err,
			Next: "give PEM files that belong together, and that this user may read"}
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, failed("tls-cert", c.Cert, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if c.ClientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, failed("tls-client-ca", c.ClientCA, err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, failed("tls-client-ca", c.ClientCA, nil) // or nobody would get through, and nobody know why
	}
	return config, nil
}

// current is the configuration for another connection, for tls.Config.GetConfigForClient.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.look(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config, nil
}

// look reads the files again where they have changed. While they cannot be used, as between
// the writing of one and the other, what they were before holds.
func (c *certificates) look(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stamps()
	if now == c.seen && !again {
		return
	}
	c.seen = now
	config, err := c.read()
	if err != nil {
		c.log.Error("the TLS files cannot be used: what they were before still holds", "error", err)
		return
	}
	c.config = config
	c.log.Info("the TLS files were read again", "certificate_ends", config.Certificates[0].Leaf.NotAfter)
}

// follow reads the files again whenever it is told to, until ctx ends.
func (c *certificates) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-c.Reload:
			if !ok {
				return
			}
			c.look(true)
		}
	}
}
