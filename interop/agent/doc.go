// Package agent runs commands and stores files on another machine over TCP: its
// server is what a guest of the lab runs, its client what the lab holds.
//
// It asks for no authority. It is for a network that nobody else is on, such as
// the namespace of the lab.
package agent
