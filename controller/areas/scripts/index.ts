export { scriptsArea } from "./area.ts";
export { identityOf } from "./identity.ts";
export { ScriptService } from "./service.ts";
