// Package native is the folder of the header and the archive that build.sh puts here; it holds no code. It is a
// package so that vendoring keeps the folder.
package native
