package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
)

// The values of --log-format and --log-level, from the lowest level.
var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

// Logger returns a log that writes to stderr. Its level is that of the flags, else of the file, else otherwise.
func (a *App) Logger(file *config.File, otherwise string) *slog.Logger {
	if a.verbose {
		otherwise = "debug"
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(config.First(otherwise, a.logLevel.value, file.LogLevel))) // one of logLevels
	return a.logTo(a.Stderr, config.First(logFormats[0], a.logFormat.value, file.LogFormat), level)
}

func (a *App) logTo(w io.Writer, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		return a.loggable(at, format)
	}}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// loggable returns an attribute as the log shows it: texts without passwords and control characters, and durations in
// JSON as seconds.
func (a *App) loggable(at slog.Attr, format string) slog.Attr {
	switch v := at.Value.Any().(type) {
	case error:
		return slog.String(at.Key, a.ErrorText(v))
	case string:
		return slog.String(at.Key, a.safeText(v))
	case time.Duration:
		if format == "json" {
			return slog.Float64(at.Key, v.Seconds())
		}
	}
	return at
}
