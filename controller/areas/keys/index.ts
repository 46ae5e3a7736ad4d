export { keysArea } from "./area.ts";
export { KeptParts } from "./kept-parts.ts";
export { keysKnown } from "./known.ts";
export { Resealing } from "./resealing.ts";
export { KeyService } from "./service.ts";
