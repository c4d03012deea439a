package feedhttp

import (
	_ "embed"
	"net/http"
)

// openAPI is the description of the protocol. A test compares it with the routes, their parameters and their answers.
//
//go:embed openapi.json
var openAPI []byte

func (h *Handler) openapi(w http.ResponseWriter, r *http.Request, c call) error {
	h.writeWhole(w, r, c.format, openAPI)
	return nil
}
