/** Words that cannot be bare names, unless the next character allows only a name before it. */
const RESERVED_WORDS =
  "SELECT DISTINCT FROM WHERE AND OR NOT IN LIKE BETWEEN IS ISNOT CONTAINS ORDER GROUP HAVING LIMIT OFFSET AS UNION JOIN ON SET " +
  "INSERT UPDATE DELETE CREATE DROP ALTER BEGIN END EXPLAIN MATCH NOTMATCH PHRASE PREFIX FUZZY TRUE FALSE NULL";

const OTHER_WORDS =
  "ALL ADD AT ASC BATCH BY CLASS COLUMN DESC DIFF EDGE EDGETYPE EXISTS IF INDEX INDEXES INTO JSON KEY KEYS OF PATH REFRESH RETURN " +
  "TYPE CURSOR UNTIL VALUES VERSION WITH SHORT LONG DETAIL BACK CASE WHEN THEN ELSE LEFT OUTER FILL PREVIOUS OVER PARTITION ANALYZE REMOVAL ADDED DROPPED LOST";

export const RESERVED: ReadonlySet<string> = new Set(RESERVED_WORDS.split(" "));

/** Keywords in upper case and in lower case. Look up any other spelling in upper case. */
export const KEYWORDS: ReadonlyMap<string, string> = new Map(
  `${RESERVED_WORDS} ${OTHER_WORDS}`
    .split(" ")
    .flatMap((word) => [[word, word] as const, [word.toLowerCase(), word] as const]),
);
