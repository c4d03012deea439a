package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type readyOptions struct {
	url      string
	timeout  time.Duration
	insecure bool
}

func newReady(a *cli.App) *cobra.Command {
	o := &readyOptions{}
	cmd := &cobra.Command{
		Use:   "ready [URL]",
		Short: "Ask a server whether it is ready; exit 1 when it is not",
		Long: `Asks a server's /readyz whether everything works that consumers rely on, and prints what
does not; exit 1 then, or when nobody answers. It is what a container's health check
or a script that waits for a start can run: no curl is needed.

Without URL it is the server on this machine: the address and TLS of rowfeed.yaml, where
there are any, else http://127.0.0.1:8080. The certificate of a server on this machine
has another name as a rule: --insecure does not look at it. A server that asks clients
for certificates (--tls-client-ca) cannot be asked.`,
		Example: `  rowfeed ready
  rowfeed ready https://feeds.example.com --timeout 2s
  until rowfeed ready; do sleep 1; done`,
		Args: cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.url = args[0]
			}
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Second, "wait for so long for an answer")
	cmd.Flags().BoolVar(&o.insecure, "insecure", false, "do not look at the server's certificate")
	return cmd
}

func (o *readyOptions) run(ctx context.Context, a *cli.App) error {
	if o.url == "" {
		file, err := config.Load(a.ConfigPath)
		if err != nil {
			return err
		}
		o.url = hereAt(file)
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "url",
			Cause: "url: it does not have the form http://host:port", Next: "write it like http://127.0.0.1:8080"}
	}
	fail := func(cause, next string) error {
		return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "server " + u.Redacted(), Cause: cause, Next: next}
	}
	ctx, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: o.insecure},
		Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fail(fmt.Sprintf("it does not answer: %v", err), "look whether it runs, and at its log")
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return fail(fmt.Sprintf("it does not answer: %v", err), "look at its log")
	}
	var answer struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fail(fmt.Sprintf("it answers %s, and is no server of rowfeed's", response.Status), "check the URL")
	}
	if response.StatusCode != http.StatusOK || !answer.Ready {
		cause := "it is not ready"
		if len(answer.Reasons) > 0 {
			cause += ": " + strings.Join(answer.Reasons, "; ")
		}
		return fail(cause, "run `rowfeed status` where its database can be reached")
	}
	return a.PrintLine("%s: ready", u.Redacted())
}

// hereAt is the URL of the server on this machine.
func hereAt(file *config.File) string {
	listen, scheme := config.First(config.DefaultListen, file.Listen), "http"
	if file.TLSCert != nil && *file.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return scheme + "://" + listen // which will be refused
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
