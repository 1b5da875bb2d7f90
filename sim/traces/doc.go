// Package traces contains recorded traffic for the simulator, and reads traffic that users recorded.
//
// # What there is
//
//	azure2023-conversation   19,366 requests in 58 minutes, with the tokens of each
//	mooncake-synthetic       3,993 requests in 17 minutes, with the blocks of their prompts for prefix caching
//	servegen-m-large         14 days of rates and mean tokens, in windows of ten minutes, at about 196 requests a second
//	servegen-m-small         the same at about 1,196 a second
//
// [List] returns their sources, licences and how to cite them; [Open] opens one by name. They are embedded in the package:
// nothing is downloaded.
//
// # What is assumed
//
// A series gives the mean tokens of each window, not how lengths vary around the mean. Lengths are assumed to be lognormal
// with a deviation as large as the mean, between 1 and [MaxTokens].
//
// Windows of servegen-m-small without requests are gaps in the collection, not a demand of zero. [ServeGenSmall]
// interpolates them linearly between the windows before and after the gap, as [FillGaps] does; Info.Filled is their number.
//
// # Files of one's own
//
// [Read] takes Mooncake's traces, with one line of JSON per request, with or without the ids of the blocks of its prompt:
//
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48]}
//
// and CSV files in three forms, distinguished by their header:
//
//	arrival_ms,input_tokens,output_tokens                    one line per request
//	t_s,requests,input_tokens,output_tokens                  one line per second, with sums of tokens
//	t_s,rate_rps,mean_input_tokens,mean_output_tokens        one line per window, with a rate and means
//
// Columns may be in any order. Other columns are ignored, except cached_prefix_blocks_512 in the first form: the number of
// blocks of [BlockTokens] tokens that a prompt has in common with some earlier prompt, see [MooncakeSynthetic]. Byte order
// marks, CRLF, blank lines, spaces around values, semicolons or tabs for commas, and files compressed with gzip are accepted.
//
// [Convert] makes the first form from a log of requests: of a CSV file with other columns, or of a file with one JSON object
// per line.
//
// # Errors
//
// An invalid row gives a [*RowError], which names the file, the line, the column, the value and the rule:
//
//	trace.csv:17: input_tokens "abc": must be a whole number of at least 1
//
// Reading ends at the first error. A record of more than a megabyte, more than [MaxRequests] requests or windows, more than
// [MaxBlocks] blocks, and more than 90 days are errors, which limits the memory that a file can take.
package traces
