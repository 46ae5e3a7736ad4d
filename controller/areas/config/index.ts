export { configArea } from "./area.ts";
export { ConfigChanges } from "./changes.ts";
export { ConfigEntries } from "./entries.ts";
export { ConfigHistory } from "./history.ts";
export { ConfigImport } from "./import.ts";
export { anyKey } from "./keys.ts";
export type { ConfigOwner } from "./rights.ts";
export { ConfigService } from "./service.ts";
export { ConfigWatch } from "./watch.ts";
