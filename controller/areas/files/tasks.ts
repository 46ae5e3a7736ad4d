import { extractText } from "./search/extract/extract.ts";

/** Tasks of this area for worker threads. Nothing here may import stores, HTTP or services. */
export const FILE_TASKS = { extractText } as const;
export type FileTasks = typeof FILE_TASKS;
