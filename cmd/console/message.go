package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// message is the result of an action. The page that follows the action shows it once.
type message struct {
	Text string `json:"text"`
}

const (
	messageCookie = "rowfeed_message"
	messageAge    = 60 // seconds
)

// setMessage stores a message for the next page. It uses a cookie, because a message in the URL could be forged by a
// link of another site.
func setMessage(w http.ResponseWriter, r *http.Request, text string) {
	data, _ := json.Marshal(message{shorten(text)}) // a string: no error
	http.SetCookie(w, &http.Cookie{Name: messageCookie, Value: base64.RawURLEncoding.EncodeToString(data), Path: "/",
		MaxAge:   messageAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r)})
}

// popMessage returns the stored message, or nil, and deletes the cookie.
func popMessage(w http.ResponseWriter, r *http.Request) *message {
	c, err := r.Cookie(messageCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: messageCookie, Path: "/", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: secure(r)})
	var m message
	data, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || json.Unmarshal(data, &m) != nil || m.Text == "" {
		return nil
	}
	m.Text = shorten(m.Text)
	return &m
}
