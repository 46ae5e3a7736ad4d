/** Characters of a search in the manual that are read; the rest is ignored. */
export const MANUAL_QUERY_MAX_CHARACTERS = 200;
/** Words of a search in the manual that are looked up; the rest are ignored. */
export const MANUAL_QUERY_MAX_WORDS = 8;
/** Sections that a search in the manual answers. */
export const MANUAL_HITS_MAX = 20;
/** Size of one file of the manual. A larger page would load slowly: split it. */
export const MANUAL_FILE_MAX_BYTES = 1_048_576;
/** Size of all files of the manual, which the controller keeps in memory. */
export const MANUAL_MAX_BYTES = 16_777_216;
