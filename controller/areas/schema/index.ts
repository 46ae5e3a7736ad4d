export { schemaArea } from "./area.ts";
export { schemaRoutes } from "./routes.ts";
export { SchemaService } from "./service.ts";
