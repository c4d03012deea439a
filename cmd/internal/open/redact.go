package open

import (
	"net/url"
	"regexp"
	"strings"
)

// secretParameter finds "password=…" and its like, in a URL's query and in the other
// ways in which databases are named.
var secretParameter = regexp.MustCompile(`(?i)([a-z_]*(?:pass|secret|token)[a-z_]*\s*=\s*)('[^']*'|[^&\s]*)`)

// Redact hides the password of a database URL, for messages. What cannot be told
// for sure from a password is hidden too: URLs in which '@', '/' or '?' were left
// unencoded in a password lose more than it.
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

// passwordSpan is where the password is in the URL: behind the first ':' of the
// authority, up to the last '@'. It does not parse the URL: what cannot be parsed has
// a password as well.
func passwordSpan(rawURL string) (start, end int, ok bool) {
	if isSQLite(rawURL) {
		return 0, 0, false
	}
	authority := 0 // there may be no scheme: user:password@tcp(host)/db
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

// secrets are the password's spellings.
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

// tails are what is behind each character in the password that begins something else for a
// driver, where it was left unencoded: it takes the rest for a host or a parameter, and shows it.
// The longest come first.
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

// shortSecret is the length below which a password is looked for only where a
// connection string has one: "a" is in every text.
const shortSecret = 6

// ScrubText takes the URL's password out of a text and puts it on one line.
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

// Scrub is err with a text that shows no password; errors.Is and As see through it.
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
