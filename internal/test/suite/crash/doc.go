// Package crash kills processes and servers at every statement, and tests what is left.
package crash
