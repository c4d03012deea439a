package main

// limiting takes away what keeps a server from strangers, and from those who ask too much.
var limiting = []mutant{
	{
		Name: "open-to-all-unasked", Guards: "no address that others can reach without authentication, unless that is meant",
		File: "server/exposure.go", Old: "if isLoopback(at) || c.Access != nil || c.Everyone {", New: "if c.Listen != \"\" {",
		Package: "./server", Test: "TestExposed", Engines: "sqlite", Short: true,
	},
	{
		Name: "any-host", Guards: "DNS rebinding: a stranger's page in a browser on this machine",
		File: "server/exposure.go", Old: "host != \"\" && !isOwn(host)", New: "host == \"-\" && !isOwn(host)",
		Package: "./server", Test: "TestHosts", Engines: "sqlite",
	},
	{
		Name: "hosts-by-their-ending", Guards: "a name that only begins like this machine's is another's",
		File: "server/exposure.go", Old: "strings.EqualFold(host, \"localhost\")", New: "strings.HasPrefix(strings.ToLower(host), \"localhost\")",
		Package: "./server", Test: "TestHosts", Engines: "sqlite",
	},
	{
		Name: "asked-without-bound", Guards: "a client sends so many requests a second, no more",
		File: "server/limits.go", Old: "if after := l.asked.take(client(r.Context())); after > 0 {", New: "if after := l.asked.take(client(r.Context())); after < 0 {",
		Package: "./server", Test: "TestRate", Engines: "sqlite",
	},
	{
		Name: "no-bound-is-none-at-all", Guards: "-1 takes a bound away, and refuses nobody",
		File: "server/clients.go", Old: "	if burst < 0 {\n", New: "	if burst == 0 {\n",
		Package: "./server", Test: "TestRate", Engines: "sqlite",
	},
	{
		Name: "no-http2", Guards: "waits and streams of one client share a connection",
		File: "server/tls.go", Old: "[]string{\"h2\", \"http/1.1\"}", New: "[]string{\"http/1.1\"}",
		Package: "./server", Test: "TestServesByHTTP2", Engines: "sqlite",
	},
	{
		Name: "one-address-of-a-network", Guards: "of IPv6 who has one address has 2^64",
		File: "server/limits.go", Old: "ip.Prefix(64)", New: "ip.Prefix(128)",
		Package: "./server", Test: "TestRate", Engines: "sqlite",
	},
	{
		Name: "guessed-without-bound", Guards: "who is refused again and again is not asked about for ever",
		File: "server/limits.go", Old: "		if !a.known {\n", New: "		if false && !a.known {\n",
		Package: "./server", Test: "TestRefusedTooOften", Engines: "sqlite",
	},
	{
		Name: "the-known-pay-for-the-unknown", Guards: "whoever is let through does not count on the address",
		File: "server/limits.go", Old: "			a.known = true\n", New: "			_ = a\n",
		Package: "./server", Test: "TestRefusedTooOften", Engines: "sqlite",
	},
	{
		Name: "clients-are-remembered", Guards: "memory: so many clients are remembered, no more",
		File: "server/clients.go", Old: "if c.recent.Len() > maxClients {", New: "if c.recent.Len() < 0 {",
		Package: "./server", Test: "TestClientsAreForgotten", Engines: "sqlite",
	},
	{
		Name: "addresses-without-end", Guards: "no address is longer than any that there is",
		File: "server/limits.go", Old: "if len(r.RequestURI) > maxURI {", New: "if len(r.RequestURI) > 2*maxURI {",
		Package: "./server", Test: "TestRequestsOfNoShape", Engines: "sqlite",
	},
	{
		Name: "bodies-without-end", Guards: "no body is taken that nobody needs",
		File: "server/limits.go", Old: "if r.ContentLength > most || r.ContentLength < 0 && most == 0 {", New: "if r.ContentLength > most && r.ContentLength < 0 {",
		Package: "./server", Test: "TestRequestsOfNoShape", Engines: "sqlite",
	},
	{
		Name: "waits-without-bound", Guards: "so many requests wait, no more",
		File: "server/limits.go", Old: "l.Waiting >= 0 && l.waiting >= l.Waiting", New: "l.Waiting < 0 && l.waiting >= l.Waiting",
		Package: "./server", Test: "TestWaitingIsBounded", Engines: "sqlite",
	},
	{
		Name: "one-client-waits-for-all", Guards: "one client cannot have all places to wait at",
		File: "server/limits.go", Old: "who != \"\" && l.WaitingPerClient >= 0", New: "who == \"-\" && l.WaitingPerClient >= 0",
		Package: "./server", Test: "TestWaitingIsBounded", Engines: "sqlite",
	},
	{
		Name: "streams-are-not-counted", Guards: "a stream waits, too",
		File: "feedhttp/stream.go", Old: "	leave, err := h.cfg.Wait(r.Context())\n", New: "	leave, err := func() {}, error(nil)\n",
		Package: "./server", Test: "TestWaitingIsBounded", Engines: "sqlite",
	},
	{
		Name: "a-place-is-never-left", Guards: "who no longer waits leaves their place to others",
		File: "server/limits.go", Old: "		l.waiting--\n", New: "",
		Package: "./server", Test: "TestWaitingIsBounded", Engines: "sqlite",
	},
	{
		Name: "connections-without-bound", Guards: "so many connections are open, no more",
		File: "server/connections.go", Old: "l.limits.Connections >= 0 && l.open >= l.limits.Connections", New: "l.limits.Connections < 0 && l.open >= l.limits.Connections",
		Package: "./server", Test: "TestConnections", Engines: "sqlite",
	},
	{
		Name: "one-address-has-all-connections", Guards: "one address cannot have all connections",
		File: "server/connections.go", Old: "address != \"\" && l.limits.ConnectionsPerAddress >= 0", New: "address == \"-\" && l.limits.ConnectionsPerAddress >= 0",
		Package: "./server", Test: "TestConnectionsOfOneAddress", Engines: "sqlite",
	},
	{
		Name: "closed-twice-counted-twice", Guards: "a connection that is closed twice frees one place",
		File: "server/connections.go", Old: "leave: sync.OnceFunc(func() { l.leave(address) })", New: "leave: func() { l.leave(address); _ = sync.OnceFunc }",
		Package: "./server", Test: "TestConnectionsOfOneAddress", Engines: "sqlite",
	},
	{
		Name: "old-tls", Guards: "TLS 1.2 and above",
		File: "server/tls.go", Old: "MinVersion: tls.VersionTLS12, ", New: "MinVersion: tls.VersionTLS10, ",
		Package: "./server", Test: "TestTLS$", Engines: "sqlite",
	},
	{
		Name: "certificates-of-the-start", Guards: "a certificate that was exchanged is served without a restart",
		File: "server/tls.go", Old: "if now == c.seen && !again {", New: "if !again {",
		Package: "./server", Test: "TestTLSFilesChange", Engines: "sqlite",
	},
	{
		Name: "half-a-certificate", Guards: "files that cannot be used take nothing away",
		File: "server/tls.go", Old: "\"error\", err)\n		return\n", New: "\"error\", err)\n		config = &tls.Config{}\n		config.Certificates = []tls.Certificate{{Leaf: &x509.Certificate{}}}\n",
		Package: "./server", Test: "TestTLSFilesChange", Engines: "sqlite",
	},
	{
		Name: "anybodys-certificate", Guards: "mutual TLS: only clients of the authorities that were given",
		File: "server/tls.go", Old: "tls.RequireAndVerifyClientCert", New: "tls.RequireAnyClientCert",
		Package: "./server", Test: "TestClientCertificates", Engines: "sqlite",
	},
	{
		Name: "no-authority-at-all", Guards: "a file without an authority is an error, not a server for nobody",
		File: "server/tls.go", Old: "if !config.ClientCAs.AppendCertsFromPEM(authorities) {", New: "if !config.ClientCAs.AppendCertsFromPEM(authorities) && config == nil {",
		Package: "./server", Test: "TestTLSRefused", Engines: "sqlite",
	},
	{
		Name: "slashes-in-disguise", Guards: "a path means the same to a proxy in front and to the handler",
		File: "feedhttp/handler.go", Old: "strings.Contains(strings.ToLower(r.URL.RawPath), \"%2f\")", New: "strings.Contains(r.URL.RawPath, \"/%2f/\")",
		Package: "./server", Test: "TestPathTricks", Engines: "sqlite",
	},
	{
		Name: "header-of-an-endpoint-without-end", Guards: "an endpoint's answer takes so much memory, no more",
		File: "sink/webhook/dial.go", Old: "			MaxResponseHeaderBytes: maxAnswer,\n", New: "",
		Package: "./sink/webhook", Test: "TestAnswersWithoutEnd",
	},
	{
		Name: "answers-to-be-inflated", Guards: "decompression bombs of an endpoint",
		File: "sink/webhook/dial.go", Old: "DisableCompression:     true,", New: "DisableCompression:     false,",
		Package: "./sink/webhook", Test: "TestAnswersWithoutEnd",
	},
	{
		Name: "a-database-in-the-command-line", Guards: "no password in `ps`: a database's URL may stand in a variable or a file",
		File: "cmd/rowfeed/app.go", Old: "sinks.Resolve(\"db\", config.First(config.DefaultDB, a.db.value, env, file.DB), a.getenv); err != nil {", New: "config.First(config.DefaultDB, a.db.value, env, file.DB), error(nil); sinks.Resolve == nil {",
		Package: "./cmd/rowfeed", Test: "TestDatabaseFromElsewhere", Engines: "sqlite",
	},
}
