// Package traces has recorded traffic for the simulator, and reads traffic that users recorded.
//
// # What there is
//
//	azure2023-conversation   19,366 requests in 58 minutes, with the tokens of each
//	mooncake-synthetic       3,993 requests in 17 minutes, with the blocks of their prompts for prefix caching
//	servegen-m-large         14 days of rates and mean tokens, in windows of ten minutes, at about 196 requests a second
//	servegen-m-small         the same at about 1,196 a second
//
// [List] says where they are from, under which licence and how to cite them; [Open] opens one by name. They are embedded
// in the package: nothing is downloaded.
//
// # What is assumed
//
// A series has the mean tokens of each window and does not say how lengths vary around them. They are taken to be
// lognormal with a deviation as large as the mean, between 1 and [MaxTokens].
//
// Windows of servegen-m-small without requests are gaps in the collection, not a demand of zero. [ServeGenSmall] fills
// them along a straight line from the window before the gap to the one after it, as [FillGaps] does; Info.Filled is how
// many there are.
//
// # Files of one's own
//
// [Read] takes Mooncake's traces, a line of JSON a request, with or without the ids of the blocks of its prompt:
//
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}
//
// and CSV files in three forms, told apart by their header:
//
//	arrival_ms,input_tokens,output_tokens                    a request a line
//	t_s,requests,input_tokens,output_tokens                  a second a line, with sums of tokens
//	t_s,rate_rps,mean_input_tokens,mean_output_tokens        a window a line, with a rate and means
//
// Columns may be in any order, and others beside them are not read, but for cached_prefix_blocks_512 beside the first form:
// how many blocks of [BlockTokens] tokens a prompt has in common with some prompt before it, see [MooncakeSynthetic]. Byte order marks, CRLF, blank lines, spaces around
// values and files compressed with gzip are understood.
//
// [Convert] makes the first form of a log of requests.
//
// # Errors
//
// What is wrong with a file is a [*RowError], which names the file, the line, the column, the value and the rule:
//
//	trace.csv:17: input_tokens "abc": must be a whole number of at least 1
//
// Reading ends at the first one. A record of more than a megabyte, more than [MaxRequests] requests or [MaxBlocks] blocks, or more than 90 days
// are errors, so that no file takes more memory than that.
package traces
