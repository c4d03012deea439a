package open

import (
	"database/sql/driver"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowfeed/rowfeed/dialect/postgres"
)

// serverConnections limits the pool on a database server. A publisher uses a connection during a pass, a request during
// its page.
const serverConnections = 16

// postgresIdle is the time after which idle connections of a burst are closed.
const postgresIdle = 5 * time.Minute

func parsePostgres(rawURL string) (*database, error) {
	config, err := postgresConfig(rawURL)
	if err != nil {
		return nil, err
	}
	where := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if strings.HasPrefix(config.Host, "/") {
		where = "socket in " + config.Host
	}
	return &database{
		dialect: postgres.New(),
		where:   where,
		connect: func() (driver.Connector, error) {
			return answering{stdlib.GetConnector(*config), 0}, nil
		},
		connections: serverConnections,
		idle:        postgresIdle,
	}, nil
}

func postgresConfig(rawURL string) (*pgx.ConnConfig, error) {
	if err := checkAuthority(rawURL); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(rawURL)
	if err != nil {
		e := malformed(rawURL, "its parameters cannot be used")
		e.Err = Scrub(rawURL, err)
		return nil, e
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "rowfeed"
	}
	// The environment (PGCONNECT_TIMEOUT) counts as well.
	if config.ConnectTimeout == 0 && !strings.Contains(rawURL, "connect_timeout=") {
		config.ConnectTimeout = connectTimeout
	}
	return config, nil
}

// checkAuthority refuses URLs that the driver would read in another way than the user meant.
func checkAuthority(rawURL string) error {
	const hint = "; characters such as @ : / ? # % in a user or password must be percent-encoded (@ as %40)"
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return malformed(rawURL, "it cannot be read"+hint)
	case !strings.Contains(rawURL, "://"):
		return malformed(rawURL, "// is missing after the scheme")
	case strings.Contains(u.Path, "@") || u.User == nil && strings.Contains(u.RawQuery, "@") || u.Fragment != "":
		return malformed(rawURL, "a character in it must be percent-encoded"+hint)
	}
	return nil
}
