package open

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
)

// tdsPeer speaks as much of TDS as shows what the driver sends, and how it reads an answer. It is no database: it runs
// no statement, and answers with what a test has given it.
type tdsPeer struct {
	t      *testing.T
	at     string                   // its address
	answer func(sent string) []byte // the tokens of the answer to a request; nil means that it has succeeded
	mu     sync.Mutex
	sent   []string // the requests, as text
}

// The types of packets, and the tokens of answers (MS-TDS 2.2.3.1 and 2.2.7).
const (
	packetBatch, packetRPC, packetReply, packetTransaction = 1, 3, 4, 14
	packetLogin, packetPrelogin                            = 16, 18

	tokenColumns, tokenError, tokenLogin, tokenRow, tokenChange, tokenDone = 0x81, 0xaa, 0xad, 0xd1, 0xe3, 0xfd

	typeNull, typeInteger, typeBit, typeFloat, typeOffset = 0x1f, 0x26, 0x68, 0x6d, 0x2b
	typeBinary, typeText                                  = 0xa5, 0xe7
)

var little = binary.LittleEndian

// newTDSPeer starts a peer, which ends with the test.
func newTDSPeer(t *testing.T, answer func(sent string) []byte) *tdsPeer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tdsPeer{t: t, at: listener.Addr().String(), answer: answer}
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() {
				defer conn.Close()
				p.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		sessions.Wait()
	})
	return p
}

// url is the address in rowfeed's form.
func (p *tdsPeer) url(parameters string) string {
	return "sqlserver://sa:hunter22@" + p.at + "/shop?encrypt=disable" + parameters
}

// requests returns what was sent since the last call.
func (p *tdsPeer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// serve answers one connection until the client closes it.
func (p *tdsPeer) serve(conn net.Conn) {
	for {
		kind, reset, message, err := readMessage(conn)
		if err != nil {
			return
		}
		if kind == packetPrelogin {
			// The option for encryption, "not supported", and the end of the options.
			writeMessage(conn, []byte{1, 0, 6, 0, 1, 0xff, 2})
			continue
		}
		sent, ok := "", done(0)
		switch kind {
		case packetLogin:
			sent, ok = login(message), append(loginAnswer(), ok...)
		case packetBatch:
			sent = text(afterHeaders(message))
		case packetRPC:
			sent = call(afterHeaders(message))
		case packetTransaction:
			var change []byte
			sent, change = transaction(afterHeaders(message))
			ok = append(change, ok...)
		default:
			p.t.Errorf("a packet of type %d", kind)
		}
		if reset {
			sent = "reset, " + sent
		}
		p.mu.Lock()
		p.sent = append(p.sent, sent)
		p.mu.Unlock()
		if answer := p.answer(sent); answer != nil {
			ok = answer
		}
		if len(ok) == 0 { // the connection breaks
			return
		}
		writeMessage(conn, ok)
	}
}

// readMessage reads packets up to the last one of a message. reset says that the session is to be reset first.
func readMessage(r io.Reader) (kind byte, reset bool, message []byte, err error) {
	for {
		var header [8]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return 0, false, nil, err
		}
		body := make([]byte, int(binary.BigEndian.Uint16(header[2:]))-len(header))
		if _, err := io.ReadFull(r, body); err != nil {
			return 0, false, nil, err
		}
		kind, reset, message = header[0], reset || header[1]&8 != 0, append(message, body...)
		if header[1]&1 != 0 {
			return kind, reset, message, nil
		}
	}
}

// writeMessage writes an answer, which must fit into one packet.
func writeMessage(w io.Writer, body []byte) {
	packet := append([]byte{packetReply, 1, 0, 0, 0, 0, 1, 0}, body...)
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	_, _ = w.Write(packet)
}

// afterHeaders skips the headers of a request, which name its transaction.
func afterHeaders(message []byte) []byte { return message[little.Uint32(message):] }

// text decodes UTF-16.
func text(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = little.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// encoded encodes as UTF-16.
func encoded(s string) (b []byte) {
	for _, unit := range utf16.Encode([]rune(s)) {
		b = little.AppendUint16(b, unit)
	}
	return b
}

// login describes a LOGIN7 packet.
func login(message []byte) string {
	field := func(at int) string { // the position and the length in characters of a text
		from := int(little.Uint16(message[at:]))
		return text(message[from : from+2*int(little.Uint16(message[at+2:]))])
	}
	const user, application, database, flags = 40, 48, 68, 26
	intent := "read-write"
	if message[flags]&32 != 0 {
		intent = "read-only"
	}
	return fmt.Sprintf("login %s to %s by %s, %s", field(user), field(database), field(application), intent)
}

// transaction describes a request to the transaction manager, and returns the token that confirms it.
func transaction(request []byte) (sent string, change []byte) {
	const begin, commit, rollback = 5, 7, 8
	switch kind := little.Uint16(request); kind {
	case begin:
		return fmt.Sprintf("begin %d", request[2]), // the isolation level
			[]byte{tokenChange, 11, 0, 8, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	case commit:
		return "commit", []byte{tokenChange, 3, 0, 9, 0, 0}
	case rollback:
		return "rollback", []byte{tokenChange, 3, 0, 10, 0, 0}
	default:
		return fmt.Sprintf("transaction request %d", kind), nil
	}
}

// call describes a call of sp_executesql: the statement, and the types and values of its parameters.
func call(request []byte) string {
	r := bytes.NewReader(request[6:]) // the number of the procedure, and flags
	var values []string
	for r.Len() > 0 {
		name, _ := r.ReadByte()
		_, _ = r.Seek(2*int64(name)+1, io.SeekCurrent) // the name, and flags
		values = append(values, value(r))
	}
	return values[0] + " | " + values[1] + " | " + strings.Join(values[2:], ", ")
}

// value reads a parameter.
func value(r *bytes.Reader) string {
	kind, _ := r.ReadByte()
	size, length := 0, 0
	next := func(bytes int) (n int) {
		for i := range bytes {
			b, _ := r.ReadByte()
			n |= int(b) << (8 * i)
		}
		return n
	}
	const unlimited = 0xffff
	switch kind {
	case typeNull:
		return "NULL"
	case typeInteger, typeBit, typeFloat, typeOffset:
		size, length = next(1), next(1)
		if length == 0 {
			return "NULL"
		}
	case typeBinary, typeText:
		size = next(2)
		if kind == typeText {
			next(5) // the collation
		}
		if size == unlimited {
			if next(8) == -1 { // otherwise the length of all parts, which the driver does not tell
				return "NULL"
			}
			length = next(4) // of the only part
		} else if length = next(2); length == unlimited {
			return "NULL"
		}
	}
	content := make([]byte, length)
	_, _ = io.ReadFull(r, content)
	if size == unlimited && length > 0 {
		next(4) // no more parts
	}
	if kind == typeText {
		return text(content)
	}
	return fmt.Sprintf("%x", content)
}

// loginAnswer accepts a login. It names the version of TDS.
func loginAnswer() []byte {
	answer := append([]byte{1, 0x74, 0, 0, 4, 4}, encoded("peer")...)
	answer = append(answer, 0, 0, 0, 0)
	return append([]byte{tokenLogin, byte(len(answer)), 0}, answer...)
}

// done ends an answer.
func done(status uint16) []byte {
	return append(little.AppendUint16([]byte{tokenDone}, status), make([]byte, 10)...)
}

// failure is the answer of a request that fails with an error number.
func failure(number int32, severity byte) []byte {
	body := little.AppendUint32(nil, uint32(number))
	body = append(body, 1, severity)
	message := encoded("canned error")
	body = append(little.AppendUint16(body, uint16(len(message)/2)), message...)
	body = append(body, 0, 0, 0, 0, 0, 0) // no server, no procedure, and the number of the line
	answer := little.AppendUint16([]byte{tokenError}, uint16(len(body)))
	return append(append(answer, body...), done(2)...)
}

// row is the answer with one row of integers and texts.
func row(values ...any) []byte {
	columns, content := little.AppendUint16([]byte{tokenColumns}, uint16(len(values))), []byte{tokenRow}
	for _, v := range values {
		columns = append(columns, 0, 0, 0, 0, 0, 0) // the user's type, and flags
		switch v := v.(type) {
		case int:
			columns = append(columns, typeInteger, 8)
			content = little.AppendUint64(append(content, 8), uint64(v))
		case string:
			columns = append(columns, typeText, 0x40, 0x1f, 0, 0, 0, 0, 0)
			text := encoded(v)
			content = append(little.AppendUint16(content, uint16(len(text))), text...)
		}
		columns = append(columns, 0) // no name
	}
	return append(append(columns, content...), done(0)...)
}
