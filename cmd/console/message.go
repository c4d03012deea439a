package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// message is what an action has done, said once on the page that follows it.
type message struct {
	Text string `json:"text"`
}

const (
	messageCookie = "rowfeed_message"
	messageAge    = 60 // seconds
)

// setMessage keeps a message for the next page. It travels in a cookie rather than in the
// address, where anybody who sends somebody a link could write one.
func setMessage(w http.ResponseWriter, r *http.Request, text string) {
	data, _ := json.Marshal(message{shorten(text)}) // a string
	http.SetCookie(w, &http.Cookie{Name: messageCookie, Value: base64.RawURLEncoding.EncodeToString(data), Path: "/",
		MaxAge:   messageAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r)})
}

// popMessage answers the message that is there, and forgets it.
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
