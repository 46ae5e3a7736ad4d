export { keysArea } from "./area.ts";
export { RetainedKeyParts } from "./retained-parts.ts";
export { keysKnown } from "./known.ts";
export { Resealing } from "./resealing.ts";
export { KeyService } from "./service.ts";
