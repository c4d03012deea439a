package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
)

// What --log-format and --log-level take.
var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

// logger writes to stderr, as flags say, else rowfeed.yaml, else what is given.
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

// loggable is an attribute as a log may show it, whoever wrote it: texts without a password, and in
// JSON times that something took in seconds.
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
