package main

// observing takes away what operators rely on who look at rowfeed from outside.
var observing = []mutant{
	{
		Name: "scrapes-hang-with-the-database", Guards: "a scrape is answered while the database hangs",
		File: "metrics/state.go", Old: "		case <-patience.C:\n", New: "",
		Package: "./metrics", Test: "TestScrapeOfAHangingDatabase", Engines: "sqlite",
	},
	{
		Name: "every-scrape-asks", Guards: "the database is read no more often than Config.Every, however many scrape",
		File: "metrics/state.go", Old: "!s.began.IsZero() && time.Since(s.began) < s.cfg.Every", New: "time.Since(s.began) < 0",
		Package: "./metrics", Test: "TestScrapesShareAReading", Engines: "sqlite",
	},
	{
		Name: "series-without-bound", Guards: "the number of series is bounded",
		File: "metrics/metrics.go", Old: "if len(n.known) >= n.most {", New: "if false {",
		Package: "./metrics", Test: "TestSeriesAreBounded", Engines: "sqlite",
	},
	{
		Name: "any-shard-is-told", Guards: "the shard that is most behind is always told",
		File: "metrics/state.go", Old: "cmp.Compare(amount(b.BehindSeconds), amount(a.BehindSeconds))", New: "cmp.Compare(amount(a.BehindSeconds), amount(b.BehindSeconds))",
		Package: "./metrics", Test: "TestSeriesAreBounded", Engines: "sqlite",
	},
	{
		Name: "metrics-for-strangers", Guards: "metrics are for who may read every feed",
		File: "server/scrape.go", Old: "if !access.From(r.Context()).May(access.Read, access.EveryFeed) {", New: "if access.From(r.Context()).May(\"\", \"\") {",
		Package: "./server", Test: "TestMetricsAreNotForStrangers", Engines: "sqlite", Short: true,
	},
	{
		Name: "locked-rows-are-nobodys-news", Guards: "rows that a publisher passes over are counted",
		File: "column.go", Old: "		if err := f.tellSkipped(ctx, tx, feed, limit); err != nil {", New: "		if err := error(nil); err != nil {",
		Package: "./metrics", Test: "TestSkippedRows", Engines: "postgres15,mariadb",
	},
	{
		Name: "metrics-for-the-network", Guards: "metrics of processes that serve nothing are for their machine alone, unless an address says otherwise",
		File: "server/scrape.go", Old: "		cfg.Listen = \"127.0.0.1\" + cfg.Listen\n", New: "",
		Package: commandLine, Test: "TestMetricsBesideServers", Engines: "sqlite",
	},
	{
		Name: "a-reload-that-ends", Guards: "systemctl reload ends no server",
		File: "cmd/rowfeed/serve_network.go", Old: "	signal.Notify(signals, syscall.SIGHUP)\n", New: "	if cfg.TLS != nil {\n		signal.Notify(signals, syscall.SIGHUP)\n	}\n",
		Package: commandLine, Test: "TestHangupWithoutFiles", Engines: "sqlite",
	},
	{
		Name: "leases-go-with-the-terminal", Guards: "a publisher whose terminal goes gives its lease back",
		File: "cmd/rowfeed/publish.go", Old: "	ctx, stop := orHangup(ctx)\n", New: "	ctx, stop := context.WithCancel(ctx)\n",
		Package: commandLine, Test: "TestHangupOfAPublisher", Engines: "sqlite",
	},
	{
		Name: "ready-without-room", Guards: "/readyz tells of a publisher that cannot write",
		File: "publisher.go", Old: "			f.setProblems([]string{withoutDriver(err)})\n			verified", New: "			verified",
		Package: "./server", Test: "TestReadyOnAFullDisk", Engines: "sqlite",
	},
	{
		Name: "ready-where-nothing-can-be-written", Guards: "/readyz tells of a publisher that cannot take its lease",
		File: "publisher_lease.go", Old: "		f.setProblems([]string{withoutDriver(err)})\n		observer", New: "		observer",
		Package: "./server", Test: "TestReadyOnAReadOnlyDatabase", Engines: "sqlite",
	},
	{
		Name: "any-schema-will-do", Guards: "/readyz tells of tables of another rowfeed",
		File: "setup.go", Old: "current > newest {", New: "current > newest+1000 {",
		Package: "./server", Test: "TestReadyWithAnotherSchema", Engines: "sqlite",
	},
	{
		Name: "half-the-observers", Guards: "of several observers each is told everything",
		File: "observe_join.go", Old: "		each.Term = both(each.Term, o.Term)\n", New: "",
		Package: ".", Test: "TestObservers",
	},
	{
		Name: "traces-end-at-the-server", Guards: "a request's trace goes on at the server",
		File: "feedhttp/handler.go", Old: "rowfeed.StartSpan(t.Extract(r.Context(), r.Header.Get), t,", New: "rowfeed.StartSpan(r.Context(), t,",
		Package: "./tracing", Test: "TestSpans", Engines: "sqlite",
	},
	{
		Name: "handlers-know-no-page", Guards: "what a consumer handles leads to the page that it was read on",
		File: "consume_apply.go", Old: ", Behind: r.reading.context()", New: "",
		Package: "./tracing", Test: "TestSpans", Engines: "sqlite",
	},
	{
		Name: "pages-read-ahead-know-no-trace", Guards: "also of a page that was read ahead",
		File: "consume_page.go", Old: "r.next, r.reading = nil, a.span", New: "r.next = nil",
		Package: "./tracing", Test: "TestSpansReadAhead", Engines: "sqlite",
	},
	{
		Name: "receivers-know-no-trace", Guards: "a delivery carries its trace to the receiver",
		File: "sink/webhook/request.go", Old: "	rowfeed.TraceHeaders(ctx, req.Header.Set)\n", New: "	_ = rowfeed.TraceHeaders\n",
		Package: "./tracing", Test: "TestSpans", Engines: "sqlite",
	},
	{
		Name: "nats-knows-no-trace", Guards: "a message carries its trace to whoever takes it",
		File: "sink/nats/nats.go", Old: "	rowfeed.TraceHeaders(ctx, m.Header.Set)\n", New: "	_ = rowfeed.TraceHeaders\n",
		Package: "./sink/nats", Test: "TestTrace", Engines: "sqlite",
	},
	{
		Name: "kafka-knows-no-trace", Guards: "so does a record",
		File: "sink/kafka/kafka.go", Old: "	rowfeed.TraceHeaders(ctx, func(", New: "	rowfeed.TraceHeaders(context.Background(), func(",
		Package: "./sink/kafka", Test: "TestOnePartitionPerKey", Engines: "sqlite",
	},
	{
		Name: "errors-are-sent-whole", Guards: "no password in a span",
		File: "tracing/tracing.go", Old: "span.SetStatus(codes.Error, code)", New: "span.SetStatus(codes.Error, e.Err.Error())",
		Package: "./tracing", Test: "TestFromEnvironment", Engines: "sqlite",
	},
}
