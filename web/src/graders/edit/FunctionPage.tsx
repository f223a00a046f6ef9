import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { api, ask } from "../../api/client";
import { useProject } from "../../api/me";
import { Loading } from "../../parts/Loading";
import { ProblemBox } from "../../parts/ProblemBox";
import { usePageTitle } from "../../parts/title";
import { FunctionEditor } from "./FunctionEditor";

/** Writes a function grader: a new one, or a new version of the one in the address. */
export default function FunctionPage() {
  const { key } = useParams();
  const project = useProject();
  usePageTitle(key ? `Edit ${key}` : "New function grader");
  const grader = useQuery({
    queryKey: ["grader", project, key],
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/v1/projects/{project}/graders/{key}", {
          params: { path: { project, key: key ?? "" } },
          signal,
        }),
      ),
    enabled: key !== undefined,
    refetchOnWindowFocus: false,
  });
  if (key === undefined) return <FunctionEditor key={project} project={project} grader={null} />;
  if (grader.data) {
    return <FunctionEditor key={`${project} ${key}`} project={project} grader={grader.data} />;
  }
  return (
    <div className="page">
      {grader.error ? <ProblemBox problem={grader.error} retry={grader.refetch} /> : <Loading />}
    </div>
  );
}
