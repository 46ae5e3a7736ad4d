export { scriptsArea } from "./area.ts";
export { identityOf } from "./identity.ts";
export { type KeptScript, ScriptService } from "./service.ts";
