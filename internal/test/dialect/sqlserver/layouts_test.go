package sqlserver_test

import (
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
	"github.com/rowfeed/rowfeed/feedtype"
)

var (
	d     = sqlserver.New()
	names = dialect.Names{Schema: "dbo", Prefix: "rowfeed_"}
)

// layout is one kind of feed, of a table shop.kv or dbo.kv.
type layout struct {
	name string
	feed *dialect.Feed
	spec rowfeed.FeedSpec
}

const (
	text  = "nvarchar(50) COLLATE Latin1_General_CI_AS"
	ascii = "varchar(50) COLLATE Latin1_General_100_BIN2"
)

func column(name, declaration string) dialect.Column {
	c := d.KeyColumn(name, declaration)
	c.Stored = dialect.StoredName(name)
	return c
}

// layouts has every kind of feed.
func layouts() []layout {
	id, ns, k := column("id", "bigint"), column("ns", text),
		column("k]", ascii)
	make := func(name string, spec rowfeed.FeedSpec, change func(*dialect.Feed)) layout {
		f := &dialect.Feed{Name: "kv", Names: names, Source: feedtype.TableName{Schema: "dbo", Name: "kv"},
			Key: []dialect.Column{id}, Primary: true, Capture: feedtype.CaptureTrigger,
			Columns: []dialect.Column{id, column("v", "decimal(10,2)"), column("at", "datetimeoffset(3)")}}
		change(f)
		spec.Name, spec.DataShards = "kv", f.DataShards
		if spec.Table == "" {
			spec.Table = "kv"
		}
		if spec.Key == nil {
			spec.Key = []string{"id:bigint"}
		}
		return layout{name, f, spec}
	}
	outbox := func(f *dialect.Feed) {
		f.Outbox, f.Capture = true, feedtype.CaptureApp
		f.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID, Shard: column("shard", "bigint"), Index: "place"}
	}
	return []layout{
		make("one-key", rowfeed.FeedSpec{}, func(*dialect.Feed) {}),
		make("composite", rowfeed.FeedSpec{Table: "shop.kv", Key: []string{"ns:" + text, "k]:" + ascii}},
			func(f *dialect.Feed) { f.Key, f.Source.Schema = []dialect.Column{ns, k}, "shop" }),
		make("column", rowfeed.FeedSpec{Capture: feedtype.CaptureColumn}, func(f *dialect.Feed) {
			f.Capture, f.Added = feedtype.CaptureColumn, []string{dialect.PositionColumn, dialect.ShardColumn}
		}),
		make("sharded-column", rowfeed.FeedSpec{Capture: feedtype.CaptureColumn}, func(f *dialect.Feed) {
			f.Capture, f.Added = feedtype.CaptureColumn, []string{dialect.PositionColumn, dialect.ShardColumn}
			f.DataShards = 64
		}),
		make("sharded", rowfeed.FeedSpec{}, func(f *dialect.Feed) { f.DataShards = 64 }),
		make("outbox", rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox}, outbox),
		make("outbox-composite", rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Table: "shop.kv",
			Key: []string{"ns:" + text, "k]:" + ascii, "shard:int"}}, func(f *dialect.Feed) {
			outbox(f)
			f.Key, f.Source.Schema = []dialect.Column{ns, k, column("shard", "int")}, "shop"
		}),
		make("outbox-trigger", rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger,
			ShardColumn: "v:int"}, func(f *dialect.Feed) {
			outbox(f)
			f.Capture, f.RecordShard = feedtype.CaptureTrigger, "v"
		}),
		make("blocking", rowfeed.FeedSpec{Mode: rowfeed.ModeBlocking, PositionColumn: "u:binary(16)",
			ShardColumn: "v:int"}, func(f *dialect.Feed) {
			f.Capture = feedtype.CaptureNone
			f.ULIDs = &dialect.ULIDColumns{Position: column("u", "binary(16)"), Shard: column("v", "int"),
				Index: "kv_feed"}
		}),
	}
}
