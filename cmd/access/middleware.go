package access

import (
	"errors"
	"net/http"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// Identify stands in front of a server: it hands requests on with the [Identity] of those who
// send them in their context. Those where nobody says who they are are nobody's: see
// [Required]. Whoever says something wrong is answered 401.
func Identify(auth Authenticator) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, err := auth.Identify(r)
			if err != nil && !errors.Is(err, ErrNobody) {
				if errors.Is(err, rowfeed.Unauthorized) {
					w.Header().Set("WWW-Authenticate", feedhttp.Challenge+`, error="invalid_token"`)
				}
				feedhttp.Refuse(w, r, feedhttp.ProblemOf(err, ""))
				return
			}
			next.ServeHTTP(w, r.WithContext(With(r.Context(), who)))
		})
	}
}

// Required stands in front of what is not for nobody: it answers such requests with 401.
func Required(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if From(r.Context()).Name == "" {
			feedhttp.Refuse(w, r, feedhttp.ProblemOf(ErrNobody, ""))
			return
		}
		next.ServeHTTP(w, r)
	})
}
