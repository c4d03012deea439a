// Package suite_test is the binary that runs the suite of internal/test/suite, and the folders beside this file, whose
// tests need packages of the commands.
package suite_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/internal/suite/relay"
	"github.com/rowfeed/rowfeed/cmd/internal/suite/wire"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/tap"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/suite/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite/capture"
	"github.com/rowfeed/rowfeed/internal/test/suite/consume"
	"github.com/rowfeed/rowfeed/internal/test/suite/crash"
	"github.com/rowfeed/rowfeed/internal/test/suite/gap"
	"github.com/rowfeed/rowfeed/internal/test/suite/install"
	"github.com/rowfeed/rowfeed/internal/test/suite/lease"
	"github.com/rowfeed/rowfeed/internal/test/suite/original"
	"github.com/rowfeed/rowfeed/internal/test/suite/outbox"
	"github.com/rowfeed/rowfeed/internal/test/suite/page"
	"github.com/rowfeed/rowfeed/internal/test/suite/plans"
	"github.com/rowfeed/rowfeed/internal/test/suite/publish"
	"github.com/rowfeed/rowfeed/internal/test/suite/shard"
	"github.com/rowfeed/rowfeed/internal/test/suite/ulid"
	"github.com/rowfeed/rowfeed/internal/test/suite/ulidconsumer"
	"github.com/rowfeed/rowfeed/internal/test/suite/values"
)

func TestMain(m *testing.M) {
	suite.Main(m, suite.Connector{
		Open: func(ctx context.Context, url string, hooks *tap.Hooks) (*sql.DB, *dialect.Dialect, error) {
			return open.Open(ctx, url, open.Options{Tap: hooks})
		},
		Dialect: open.Dialect,
	})
}

func TestSuite(t *testing.T) {
	suite.Run(t,
		admin.Tests,
		capture.Tests,
		consume.Tests,
		crash.Tests,
		gap.Tests,
		install.Tests,
		lease.Tests,
		original.Tests,
		outbox.Tests,
		page.Tests,
		plans.Tests,
		publish.Tests,
		relay.Tests,
		shard.Tests,
		ulid.Tests,
		ulidconsumer.Tests,
		values.Tests,
		wire.Tests,
	)
}
