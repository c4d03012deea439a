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

// negotiate picks one of the offers by the Accept header's fields (RFC 9110, section
// 12.5.1): the highest quality; among equals the one named more exactly, then the
// first offered. No header at all accepts anything. ok is false when nothing fits.
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

// qualityOf is what the most exact matching range says of a media type, and how
// exact that range is: 2 names the type, 1 is application/*, 0 is */*, -1 is none.
func qualityOf(header, offer string) (quality float64, exact int) {
	exact = -1
	major, _, _ := strings.Cut(offer, "/")
	for element := range strings.SplitSeq(header, ",") {
		mediaRange, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue // what cannot be understood asks for nothing
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
