/* Runs the tests one after the other, in the judge's sandbox: runner SOCKET DIRECTORY SECONDS.
   Each line of DIRECTORY/jobs is a program and, behind a tab, a test of it. What came of each goes
   to DIRECTORY/report; what it printed to DIRECTORY/<number>. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sides.h"

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int wait_for(pid_t child, double deadline, int *status)
{
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    for (;;) {
        if (waitpid(child, status, WNOHANG) == child)
            return 1;
        double left = deadline - now();
        if (left <= 0)
            return 0;
        struct timespec time = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        sigtimedwait(&ended, NULL, &time);
    }
}

int main(int count, char **words)
{
    if (count != 4 || chdir("/workspace"))
        return 2;
    char path[4096], line[4096];
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    strncpy(place.sun_path, words[1], sizeof place.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&place, sizeof place) || chmod(words[1], 0666) ||
        listen(listener, 4))
        return 3;
    snprintf(path, sizeof path, "%s/report", words[2]);
    FILE *report = fopen(path, "we");
    snprintf(path, sizeof path, "%s/jobs", words[2]);
    FILE *jobs = fopen(path, "re");
    if (!report || !jobs)
        return 4;
    sigset_t ended, before;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, &before);
    for (int number = 0; fgets(line, sizeof line, jobs); number++) {
        line[strcspn(line, "\n")] = 0;
        char *test = strchr(line, '\t');
        if (test)
            *test++ = 0;
        int link;
        while ((link = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
            if (errno != EINTR && errno != ECONNABORTED)
                return 5;
        double start = now();
        pid_t child = fork();
        if (child < 0)
            return 6;
        if (!child) {
            setsid();
            sigprocmask(SIG_SETMASK, &before, NULL);
            snprintf(path, sizeof path, "%s/%d", words[2], number);
            int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
            dup2(log, 1);
            dup2(log, 2);
            dup2(link, ASSAY_LINK);
            if (log > 2)
                close(log);
            execl(line, line, test, (char *)NULL);
            _exit(127);
        }
        int status = 0, done = wait_for(child, start + atof(words[3]), &status);
        kill(-child, SIGKILL);
        if (!done)
            waitpid(child, &status, 0);
        shutdown(link, SHUT_RDWR);
        close(link);
        if (!done)
            fprintf(report, "%d late 0 %.3f\n", number, now() - start);
        else if (WIFSIGNALED(status))
            fprintf(report, "%d signal %d %.3f\n", number, WTERMSIG(status), now() - start);
        else
            fprintf(report, "%d exit %d %.3f\n", number, WEXITSTATUS(status), now() - start);
        fflush(report);
    }
    fputs("end\n", report);
    return fclose(report) ? 7 : 0;
}
