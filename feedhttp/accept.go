package feedhttp

import (
	"mime"
	"strconv"
	"strings"
)

const (
	jsonMediaType   = "application/json"
	ndjsonMediaType = "application/x-ndjson"
)

// negotiate selects one of the offers by the fields of the Accept header (RFC 9110, section 12.5.1). It prefers the
// highest quality, then the offer that the header names more exactly, then the first offer. Without a header every
// offer is acceptable. ok is false if no offer is acceptable.
func negotiate(accept []string, offers ...string) (offer string, ok bool) {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return offers[0], true
	}
	var best, bestExact = 0.0, -1
	for _, o := range offers {
		quality, exact := qualityOf(header, o)
		if quality > best || quality == best && quality > 0 && exact > bestExact {
			offer, best, bestExact, ok = o, quality, exact, true
		}
	}
	return offer, ok
}

// qualityOf returns the quality of the most exact range of the header that matches a media type. exact is how exact
// that range is: 2 for the type itself, 1 for application/*, 0 for */*, and -1 for no match.
func qualityOf(header, offer string) (quality float64, exact int) {
	exact = -1
	major, _, _ := strings.Cut(offer, "/")
	for element := range strings.SplitSeq(header, ",") {
		mediaRange, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue // ignore ranges that cannot be parsed
		}
		how := -1
		switch mediaRange {
		case offer:
			how = 2
		case major + "/*":
			how = 1
		case "*/*":
			how = 0
		}
		if how <= exact {
			continue
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		quality, exact = q, how
	}
	return quality, exact
}
