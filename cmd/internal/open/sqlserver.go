package open

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
)

const (
	// sqlServerIdle is the time after which idle connections of a burst are closed.
	sqlServerIdle = 5 * time.Minute
	// sqlServerSession runs whenever the pool hands out a connection. The reset that the driver asks for does not reset
	// the isolation level: without this, a connection would keep the SNAPSHOT of its user before.
	sqlServerSession = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
	// cannotOpenDatabase is the server's error number for a database that is missing or that the login may not use.
	cannotOpenDatabase = 4060
)

func parseSQLServer(rawURL string) (*database, error) {
	config, err := sqlServerConfig(rawURL)
	if err != nil {
		return nil, err
	}
	where := net.JoinHostPort(config.Host, "1433")
	if config.Port != 0 {
		where = net.JoinHostPort(config.Host, strconv.FormatUint(config.Port, 10))
	} else if config.Instance != "" {
		where = config.Host + `\` + config.Instance
	}
	return &database{
		dialect: sqlserver.New(),
		where:   where,
		connect: func() (driver.Connector, error) {
			return answering{handshaking{config}, config.DialTimeout}, nil
		},
		connections: serverConnections,
		idle:        sqlServerIdle,
		advise: func(err error) (cause, next string) {
			var answer mssql.Error
			switch {
			case errors.As(err, &answer) && answer.Number == cannotOpenDatabase:
				next = "check that the database " + config.Database + " exists and is online, and that the login has " +
					"a user in it: CREATE USER name FOR LOGIN name"
			case answer.Number == 0 && sqlserver.New().Classify(err) == dialect.ClassOther:
				next = "if the server's certificate is not trusted here, add certificate=FILE or " +
					"TrustServerCertificate=true to the URL's parameters; otherwise check the URL"
			}
			return "no connection to " + where, next
		},
	}, nil
}

// sqlServerConfig reads a URL whose path is the name of the database. If there is a parameter database, the path is the
// name of the instance, as in the driver's own URLs.
func sqlServerConfig(rawURL string) (config msdsn.Config, err error) {
	if err := checkAuthority(rawURL); err != nil {
		return config, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return config, malformed(rawURL, "it cannot be read")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return config, malformed(rawURL, "its parameters cannot be read")
	}
	given := make(map[string]bool)
	for name := range query {
		given[strings.ToLower(name)] = true
	}
	if !given[msdsn.Database] {
		name := strings.TrimPrefix(u.Path, "/")
		if name == "" {
			return config, malformed(rawURL, "it names no database")
		}
		query.Set(msdsn.Database, name)
		u.Path, u.RawPath = "", ""
	}
	if u.Hostname() == "" {
		u.Host = net.JoinHostPort("127.0.0.1", orDefault(u.Port(), "1433"))
	}
	u.Scheme, u.RawQuery = "sqlserver", query.Encode()
	config, err = msdsn.Parse(u.String())
	if err != nil {
		e := malformed(rawURL, "its parameters cannot be used")
		e.Err = Scrub(rawURL, err)
		return config, e
	}
	if !given[msdsn.AppName] {
		config.AppName = "rowfeed"
	}
	if !given[msdsn.DialTimeout] {
		config.DialTimeout = connectTimeout
	}
	return config, nil
}

// handshaking makes connections, and gives up a handshake when the context ends. The driver itself would wait forever
// for the answer of a port that is open.
type handshaking struct{ config msdsn.Config }

// Connect implements driver.Connector.
func (h handshaking) Connect(ctx context.Context) (driver.Conn, error) {
	dialed, done := context.WithCancelCause(ctx)
	connector := mssql.NewConnectorConfig(h.config)
	connector.SessionInitSQL = sqlServerSession
	connector.Dialer = dialer{net.Dialer{KeepAlive: h.config.KeepAlive}, dialed}
	conn, err := connector.Connect(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	done(errConnected)
	return conn, err
}

// Driver implements driver.Connector.
func (h handshaking) Driver() driver.Driver { return mssql.NewConnectorConfig(h.config).Driver() }

// errConnected ends the context of a handshake that has succeeded.
var errConnected = errors.New("connected")

// dialer closes its connections if the handshake's context ends early.
type dialer struct {
	net.Dialer
	handshake context.Context
}

// DialContext implements mssql.Dialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(d.handshake, func() {
		if !errors.Is(context.Cause(d.handshake), errConnected) {
			_ = conn.Close()
		}
	})
	return conn, nil
}
