export { scriptsArea } from "./area.ts";
export { identityOf } from "./identity.ts";
export { SCRIPT_NAMES } from "./paths.ts";
export { type KeptScript, ScriptService } from "./service.ts";
