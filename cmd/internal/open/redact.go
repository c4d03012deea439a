package open

import (
	"net/url"
	"regexp"
	"strings"
)

// secretParameter finds "password=…" and similar parameters, in a URL's query and in other connection strings.
var secretParameter = regexp.MustCompile(`(?i)([a-z_]*(?:pass|pwd|secret|token)[a-z_]*\s*=\s*)('[^']*'|[^&\s]*)`)

// Redact hides the password of a database URL, for messages. It also hides what may be a part of the password: if '@',
// '/' or '?' are not encoded in it, other parts of the URL are hidden, too.
func Redact(rawURL string) string {
	if isSQLite(rawURL) {
		return rawURL
	}
	text := rawURL
	if start, end, ok := passwordSpan(text); ok {
		text = text[:start] + "***" + text[end:]
	}
	return secretParameter.ReplaceAllString(text, "${1}***")
}

func isSQLite(rawURL string) bool { return strings.HasPrefix(strings.ToLower(rawURL), "sqlite:") }

// passwordSpan returns the position of the password in the URL: behind the first ':' of the authority, up to the last
// '@'. It does not parse the URL: an invalid URL may contain a password, too.
func passwordSpan(rawURL string) (start, end int, ok bool) {
	if isSQLite(rawURL) {
		return 0, 0, false
	}
	authority := 0 // the URL may have no scheme: user:password@tcp(host)/db
	if i := strings.Index(rawURL, "://"); i >= 0 {
		authority = i + len("://")
	}
	end = strings.LastIndexByte(rawURL, '@')
	colon := strings.IndexByte(rawURL[authority:], ':')
	if colon < 0 || end < authority+colon {
		return 0, 0, false
	}
	return authority + colon + 1, end, true
}

// secrets returns the spellings of the password.
func secrets(rawURL string) []string {
	var all []string
	add := func(text string) {
		if text == "" {
			return
		}
		all = append(all, text)
		if decoded, err := url.QueryUnescape(text); err == nil && decoded != text {
			all = append(all, decoded)
		}
		if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
			all = append(all, decoded)
		}
	}
	if start, end, ok := passwordSpan(rawURL); ok {
		add(rawURL[start:end])
	}
	if !isSQLite(rawURL) {
		for _, match := range secretParameter.FindAllStringSubmatch(rawURL, -1) {
			add(match[2])
		}
	}
	return all
}

// tails returns the parts of the password after characters that a driver takes for the end of the password if they are
// not encoded. The driver then takes the rest for a host or a parameter, and shows it. The longest are first.
func tails(rawURL string) (all []string) {
	start, end, _ := passwordSpan(rawURL)
	password := rawURL[start:end]
	for i, c := range password {
		if strings.ContainsRune("@/?#", c) && i+1 < len(password) {
			all = append(all, password[i+1:])
		}
	}
	return all
}

// shortSecret is the length below which a password is replaced only where a connection string has it: every text
// contains "a".
const shortSecret = 6

// ScrubText removes the URL's password from a text, and returns the text on one line.
func ScrubText(rawURL, text string) string {
	if rawURL != "" {
		text = strings.ReplaceAll(text, rawURL, Redact(rawURL))
	}
	for _, secret := range secrets(rawURL) {
		text = strings.ReplaceAll(text, ":"+secret+"@", ":***@")
		text = strings.ReplaceAll(text, "password="+secret, "password=***")
		if len(secret) >= shortSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	for _, tail := range tails(rawURL) {
		text = strings.ReplaceAll(text, tail+"@", "***@")
	}
	return strings.Join(strings.Fields(text), " ")
}

// Scrub returns err with a text that shows no password. errors.Is and As still find the inner errors.
func Scrub(rawURL string, err error) error {
	if err == nil {
		return nil
	}
	return &scrubbed{ScrubText(rawURL, err.Error()), err}
}

type scrubbed struct {
	text string
	err  error
}

func (s *scrubbed) Error() string { return s.text }
func (s *scrubbed) Unwrap() error { return s.err }
