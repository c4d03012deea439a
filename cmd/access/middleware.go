package access

import (
	"errors"
	"net/http"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// Identify returns the authentication in front of a server. It stores the [Identity] of the client in the request's
// context. A request without credentials gets the zero Identity: see [Required]. A request with wrong credentials is
// answered with 401, unless its path is one of open: such a path is answered without an identity then. A probe of a
// server may carry credentials for another one.
func Identify(auth Authenticator, open ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, err := auth.Identify(r)
			if err != nil && !errors.Is(err, ErrNobody) && !slices.Contains(open, r.URL.Path) {
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

// Required answers requests without an identity with 401. It protects what unknown clients may not see.
func Required(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if From(r.Context()).Name == "" {
			feedhttp.Refuse(w, r, feedhttp.ProblemOf(ErrNobody, ""))
			return
		}
		next.ServeHTTP(w, r)
	})
}
