/** The place in the search page at which the controller puts the sections that it found. */
export const RESULTS_MARK = "<!-- results -->";
/** The place in the search page at which the controller puts the query, inside an attribute's value. */
export const QUERY_MARK = "<!-- query -->";
