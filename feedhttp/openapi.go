package feedhttp

import (
	_ "embed"
	"net/http"
)

// openAPI is the description of the protocol. A test compares it with the routes, their parameters and their answers.
//
//go:embed openapi.json
var openAPI []byte

// openAPIEndpoint answers with the OpenAPI description.
type openAPIEndpoint struct{ out *responder }

func (e openAPIEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	e.out.writeSmall(w, r, c.format, openAPI)
	return nil
}
