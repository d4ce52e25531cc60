package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// question is a command without arguments that prints one answer.
type question[T any] struct {
	use, short, long string
	ask              func(source, context.Context) (T, error)
	write            func(io.Writer, T) error
	// verdict, when set, is errAnswerNo when the answer is no, or why there is none.
	verdict func(T) error
}

func (q question[T]) command(o *options) *cobra.Command {
	return &cobra.Command{
		Use: q.use, Short: q.short, Long: q.long, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := q.ask(o.source(c.ErrOrStderr()), c.Context())
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), answer, func(w io.Writer) error { return q.write(w, answer) }); err != nil {
				return err
			}
			if q.verdict == nil {
				return nil
			}
			return q.verdict(answer)
		},
	}
}
