/** Whether this is a report in one file, where nobody can be asked and nothing can be changed. */
export const IN_FILE = import.meta.env.MODE === "report";
