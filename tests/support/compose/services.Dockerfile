# Stands in for the images postgres, redis and nginx.
ARG BASE
FROM ${BASE}
RUN useradd --system nginx \
    && install --directory --owner redis --group redis /data \
    && install --directory --mode 777 /docker-entrypoint-initdb.d
COPY docker-entrypoint.sh /usr/local/bin/
ENV PGDATA=/var/lib/postgresql/data PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /data
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
