package open

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	// secretParameter finds "password=" and similar names, in a URL's query and in other connection strings.
	secretParameter = regexp.MustCompile(`(?i)(?:pass|pwd|secret|token)[a-z_]*\s*=\s*`)
	// nextParameter finds the end of a parameter's value. In some connection strings a value may contain blanks, in
	// others '&' or ';': only a name after them ends it.
	nextParameter = regexp.MustCompile(`(?i)[&;\s]+[a-z_][a-z_ ]*=`)
	// port matches a port number, or an empty one, at the beginning of a text.
	port = regexp.MustCompile(`^[0-9]*(?:[/?#,;]|$)`)
)

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
	for _, value := range slices.Backward(secretValues(text)) {
		text = text[:value[0]] + "***" + text[value[1]:]
	}
	return text
}

// secretValues returns the positions of the values of secret parameters.
func secretValues(text string) (all [][2]int) {
	for at := 0; ; {
		name := secretParameter.FindStringIndex(text[at:])
		if name == nil {
			return all
		}
		start := at + name[1]
		at = len(text)
		if next := nextParameter.FindStringIndex(text[start:]); next != nil {
			at = start + next[0]
		}
		all = append(all, [2]int{start, at})
	}
}

func isSQLite(rawURL string) bool { return strings.HasPrefix(strings.ToLower(rawURL), "sqlite:") }

// passwordSpan returns the position of the password in the URL: behind the first ':' of the authority, up to the last
// '@'. Without '@', it is what follows that ':', if that is not a port. passwordSpan does not parse the URL: an invalid
// URL may contain a password, too.
func passwordSpan(rawURL string) (start, end int, ok bool) {
	if isSQLite(rawURL) {
		return 0, 0, false
	}
	authority := 0 // the URL may have no scheme: user:password@tcp(host)/db
	if i := strings.Index(rawURL, "://"); i >= 0 {
		authority = i + len("://")
	}
	end = strings.LastIndexByte(rawURL, '@')
	if end < 0 && strings.HasPrefix(rawURL[authority:], "[") { // an IPv6 address
		authority += max(0, strings.IndexByte(rawURL[authority:], ']'))
	}
	colon := strings.IndexByte(rawURL[authority:], ':')
	switch start = authority + colon + 1; {
	case colon < 0:
		return 0, 0, false
	case end >= start:
		return start, end, true
	case end < 0 && !port.MatchString(rawURL[start:]):
		return start, len(rawURL), true
	}
	return 0, 0, false
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
		for _, value := range secretValues(rawURL) {
			add(rawURL[value[0]:value[1]])
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
