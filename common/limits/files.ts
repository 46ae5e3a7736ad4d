import { KIB, MIB } from "./units.ts";

// Search in the contents of files.
/** A larger file is not searched. It is held in memory once while its text is extracted. */
export const FILE_INDEX_MAX_BYTES = 32 * MIB;
/** Characters of one content that are searched. The rest of a longer text is not found, and the file's status says so. */
export const FILE_INDEX_MAX_CHARACTERS = 8 * MIB;
/** Time from the request of an extraction to its text, including the wait for a thread. */
export const FILE_EXTRACT_DEADLINE_MS = 120_000;
/** Extractions that one controller runs at once. Each takes a worker thread. */
export const FILE_EXTRACTIONS_AT_ONCE = 1;
/** Bytes at the beginning of a content that tell if it is a text, a package or a pdf. */
export const FILE_SNIFF_BYTES = 64 * KIB;
/** Length of a passage. A character outside of ASCII counts as `FILE_PASSAGE_WIDE_WEIGHT`, because pairs are indexed. */
export const FILE_PASSAGE_MAX_WEIGHT = 2_000;
export const FILE_PASSAGE_WIDE_WEIGHT = 2.5;
/** Characters that the next passage repeats after a cut inside a word; the longest indexed word has as many. */
export const FILE_PASSAGE_OVERLAP_CHARACTERS = 64;
/** Characters before the end of a passage in which a better place for a cut is looked for. */
export const FILE_PASSAGE_BREAK_CHARACTERS = 400;
/** Passages that one search by contents reads at once. */
export const FILE_PASSAGES_READ_AT_ONCE = 64;
/** Passages that one write stores or removes, and the number of such writes at once. */
export const FILE_PASSAGES_AT_ONCE = 16;
export const FILE_PASSAGE_WRITES_AT_ONCE = 8;
/** A longer line of a docx or xlsx continues as another line of the same number. */
export const FILE_LINE_MAX_CHARACTERS = 64 * KIB;
/** Parts of a docx or xlsx, and the bytes to which they unpack together. */
export const FILE_PARTS_MAX = 12_000;
export const FILE_UNPACKED_MAX_BYTES = 256 * MIB;
/** Unpacked bytes may exceed the packed ones by this factor, beyond the free bytes. */
export const FILE_UNPACK_RATIO_MAX = 200;
export const FILE_UNPACK_RATIO_FREE_BYTES = 8 * MIB;
/** Shared texts of an xlsx, and their characters. */
export const FILE_SHARED_TEXTS_MAX = 1_000_000;
export const FILE_SHARED_TEXTS_MAX_CHARACTERS = 32 * MIB;
/** A pdf with more pages is not searched. */
export const FILE_PDF_PAGES_MAX = 5_000;
/** Works of a tenant that index a file or a folder on request and are not done. */
export const FILE_INDEX_REQUESTS_OPEN_MAX = 16;
/** Time that a write with `index=true` waits for its file to be indexed. */
export const FILE_INDEX_WRITE_ANSWER_MS = 10_000;
/** Changes of searched files whose indexing waits on one controller. Further changes are refused until it is less. */
export const FILE_INDEX_CHANGES_WAITING_MAX = 1_000;
/** Attempts to index a file whose content is replaced meanwhile. Each replacement has its own work. */
export const FILE_INDEX_READS_MAX = 3;
/** Files that a work includes at once, so that their writes share a flush of the store. */
export const FILE_INDEX_STEP_FILES = 64;
/** A work stores texts and its progress when it has so many passages, or the texts of `FILE_INDEX_STEP_FILES`. */
export const FILE_INDEX_PART_PASSAGES = 256;
/** Files without searchable text that a work names. */
export const FILE_INDEX_NAMED_MAX = 10;
/** Characters of the reason why a content is not searched. */
export const FILE_INDEX_REASON_MAX_CHARACTERS = 500;
/** Answered rows, and those of one content. */
export const FILE_SEARCH_ROWS_MAX = 100;
export const FILE_SEARCH_ROWS_PER_CONTENT = 3;
/** Passages that a search looks at before it looks up their files. It ends then if the answer is full. */
export const FILE_SEARCH_FIRST_PASSAGES = 400;
/** Passages, and files, that one search looks at. If there are more, the answer has a warning. */
export const FILE_SEARCH_PASSAGES_MAX = 5_000;
export const FILE_SEARCH_FILES_MAX = 10_000;
/** A folder with no more files and folders below it is searched by its files if words are too common. */
export const FILE_SEARCH_FOLDER_ENTRIES_MAX = 200;
/** Contents whose files are looked up at once; at most `INDEX_UNION_MAX`. */
export const FILE_SEARCH_CONTENTS_AT_ONCE = 32;
export const FILE_SEARCH_QUERY_MAX_CHARACTERS = 1_000;
export const FILE_EXCERPT_MAX_CHARACTERS = 200;
