package main

// sessions are the command lines of TestFrozenSessions, by the name of the session.
var sessions = map[string]string{}
